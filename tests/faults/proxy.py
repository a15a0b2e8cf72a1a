"""A TCP proxy that loses replies: the server has done its work, the client never hears of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


class Proxy:
    """Listens on a free loopback port and forwards to a server.

    `lose_reply_when(test)`: the next message from a client for which `test(bytes)` is true still reaches the server;
    once the server has answered it, the connection is cut on both sides and the answer is thrown away.
    `refuse` closes new connections at once.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lost = 0
        self.refuse = False
        self._test: Callable[[bytes], bool] | None = None
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_reply_when(self, test: Callable[[bytes], bool]) -> None:
        self._test = test

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def cut_all(self) -> None:
        """Break every connection that is open now."""
        with self._lock:
            sockets, self._sockets = list(self._sockets), set()
        for one in sockets:
            _end(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuse:
                _end(client)
                continue
            try:
                server = socket.create_connection(self._target)
            except OSError:
                _end(client)
                continue
            with self._lock:
                self._sockets |= {client, server}
            losing = threading.Event()
            threading.Thread(target=self._up, args=(client, server, losing), daemon=True).start()
            threading.Thread(target=self._down, args=(client, server, losing), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                with self._lock:
                    if self._test is not None and self._test(data):
                        self._test = None
                        losing.set()
                server.sendall(data)
        if not losing.is_set():
            _end(server)

    def _down(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                if losing.is_set():
                    self.lost += 1
                    break
                client.sendall(data)
        _end(server)
        _end(client)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
