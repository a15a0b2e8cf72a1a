"""A proxy in front of PostgreSQL that loses one reply: the engine has committed, and the client never hears of it."""

import contextlib
import socket
import threading

IDLE = b"Z\x00\x00\x00\x05I"
"""ReadyForQuery outside of a transaction: what was sent before is committed."""


class LosingProxy:
    """Listens on a port of its own. After a client has sent `text`, the first reply that tells of a commit is lost."""

    def __init__(self, host: str, port: int, text: str) -> None:
        self.lost = threading.Event()
        self._text = text.encode()
        self._server = (host, port)
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in (self._listener, *self._sockets):
            # A thread that waits in accept or recv is woken by shutdown alone.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                sent = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, sent), daemon=True).start()
                threading.Thread(target=self._replies, args=(client, server, sent), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, sent: threading.Event) -> None:
        tail = b""
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self._text in tail + data:
                    sent.set()
                tail = data[-len(self._text) :]
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _replies(self, client: socket.socket, server: socket.socket, sent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if sent.is_set() and not self.lost.is_set() and data.endswith(IDLE):
                    self.lost.set()
                    break
                client.sendall(data)
            for each in (client, server):
                each.shutdown(socket.SHUT_RDWR)
