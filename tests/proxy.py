"""A TCP proxy between a client and its server, for what networks and servers do to each other on bad days.

A reply gets lost after the server has done its work; connections break; new ones are refused; replies come late or not
at all. What must be known of a protocol to see a commit in it stands in `WIRES`, one entry for each kind of server.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy.engine import URL, make_url


@dataclass(frozen=True)
class Wire:
    """What must be known of a protocol."""

    port: int
    """Where its servers listen unless the URL says otherwise."""

    readable: Mapping[str, str]
    """Options of the URL with which nothing is encrypted."""

    tells_of_commit: Callable[[bytes], bool]
    """Whether a reply tells that what the client sent before is committed: that no transaction is open any more."""

    encoding: str = "utf-8"
    """How text travels."""


READY_AND_IDLE = b"Z\x00\x00\x00\x05I"
"""PostgreSQL's ReadyForQuery outside of a transaction, which ends a reply."""

IN_TRANSACTION, MORE_RESULTS = 0x0001, 0x0008
"""Status flags of MySQL's protocol."""


def _is_ok_and_idle(reply: bytes) -> bool:
    """Whether it ends with MySQL's OK packet of a COMMIT: 0, no row, no id, two bytes of status, two of warnings."""
    ok, status = reply[-7:-4], int.from_bytes(reply[-4:-2], "little")
    return ok == b"\0\0\0" and not status & (IN_TRANSACTION | MORE_RESULTS)


COMMITTED = b"\xe3\x0b\x00\x09\x00\x08"
"""An ENVCHANGE of SQL Server's protocol, of type 9: the transaction whose number follows has been committed."""

_MYSQL = Wire(port=3306, readable={"sslmode": "disable"}, tells_of_commit=_is_ok_and_idle)
WIRES: dict[str, Wire] = {
    "postgresql": Wire(
        port=5432, readable={"sslmode": "disable"}, tells_of_commit=lambda reply: reply.endswith(READY_AND_IDLE)
    ),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlserver": Wire(
        port=1433,
        readable={"encryption": "off"},
        tells_of_commit=lambda reply: COMMITTED in reply,
        encoding="utf-16-le",
    ),
}


class Proxy:
    """Listens on a loopback port of its own, from now on until `close`."""

    def __init__(self, server: URL) -> None:
        self._wire = WIRES[server.get_backend_name()]
        self._target = (server.host or "localhost", server.port or self._wire.port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._url = server.set(host="127.0.0.1", port=self._listener.getsockname()[1]).update_query_dict(
            dict(self._wire.readable)
        )
        self.lost = 0
        """Replies lost so far."""
        self.refuse = False
        """Close new connections at once."""
        self.refuse_after_loss = False
        """Begin to refuse with the next loss, so that nothing can be repeated after it."""
        self._awaited: bytes | None = None
        self._is_it: Callable[[bytes], bool] = bool
        self._stalls = False
        self._flowing = threading.Event()
        self._flowing.set()
        self._delay = 0.0
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, **options: str) -> str:
        """The server's URL through here, password included."""
        return self._url.update_query_dict(options).render_as_string(hide_password=False)

    def lose_reply(self, text: str) -> None:
        """Once a client has sent `text`, its connection is cut, once, as soon as the server has answered."""
        self._await(text, bool, stalls=False)

    def lose_commit(self, text: str) -> None:
        """Once a client has sent `text`, its connection is cut, once, as soon as the server tells of the commit."""
        self._await(text, self._wire.tells_of_commit, stalls=False)

    def stall_reply(self, text: str) -> None:
        """Once a client has sent `text`, the next reply and all that come later are held back, as `stall` does."""
        self._await(text, bool, stalls=True)

    def stall_commit(self, text: str) -> None:
        """Once a client has sent `text`, the reply that tells of the commit and all later ones are held back."""
        self._await(text, self._wire.tells_of_commit, stalls=True)

    def stall(self) -> None:
        """Hold all replies back, a new connection's greeting too. What clients send still arrives."""
        self._flowing.clear()

    def flow(self, *, delay: float = 0.0) -> None:
        """Let replies pass again, each one so many seconds late."""
        self._delay = delay
        self._flowing.set()

    def cut_all(self) -> None:
        """Break every connection that is open now."""
        with self._lock:
            sockets, self._sockets = list(self._sockets), set()
        for one in sockets:
            _end(one)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._listener.close()
        self.flow()
        self.cut_all()

    def _await(self, text: str, is_it: Callable[[bytes], bool], *, stalls: bool) -> None:
        with self._lock:
            self._awaited, self._is_it, self._stalls = text.encode(self._wire.encoding), is_it, stalls

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = None if self.refuse else socket.create_connection(self._target)
            except OSError:
                server = None
            if server is None:
                _end(client)
                continue
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets |= {client, server}
            sent = threading.Event()
            for forward in (self._up, self._down):
                threading.Thread(target=forward, args=(client, server, sent), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, sent: threading.Event) -> None:
        tail = b""
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                with self._lock:
                    tail += data
                    if self._awaited is not None and self._awaited in tail:
                        self._awaited = None
                        sent.set()
                    tail = tail[-200:]  # the text may come in two pieces
                server.sendall(data)
        if not sent.is_set():
            _end(server)

    def _down(self, client: socket.socket, server: socket.socket, sent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65_536):
                if sent.is_set() and self._is_it(data):
                    if not self._stalls:
                        self.lost += 1
                        self.refuse = self.refuse or self.refuse_after_loss
                        break
                    sent.clear()
                    self.stall()
                if self._delay:
                    time.sleep(self._delay)
                self._flowing.wait()
                client.sendall(data)
        _end(server)
        _end(client)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextlib.contextmanager
def losing_commit(url: str, text: str) -> Iterator[str]:
    """A URL through which the reply to the commit of `text` is lost, once. Fails where no reply was."""
    proxy = Proxy(make_url(url))
    try:
        proxy.lose_commit(text)
        yield proxy.url()
        assert proxy.lost == 1, "no reply was lost"
    finally:
        proxy.close()
