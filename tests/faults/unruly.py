"""A server that answers well until it is told how to misbehave. Raw sockets: most of it is no HTTP."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

PAGE = b'sglang:num_running_reqs{tp_rank="0"} 3.0\n'
Answer = Callable[[socket.socket, str], None]


def http(status: int = 200, body: bytes = b"", promised_bytes: int | None = None, headers: str = "") -> Answer:
    """One HTTP answer to every path."""
    length = len(body) if promised_bytes is None else promised_bytes
    head = f"HTTP/1.1 {status} Odd\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    return raw(head.encode() + body)


def raw(data: bytes) -> Answer:
    """These bytes."""
    return lambda connection, _: connection.sendall(data)


def silent(connection: socket.socket, _: str) -> None:
    """Not a word, for longer than anybody waits."""
    connection.settimeout(30)
    with suppress(OSError):
        connection.recv(1)


def dripping(connection: socket.socket, _: str) -> None:
    """A byte at a time, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def reset(connection: socket.socket, _: str) -> None:
    """Half an answer, then the process is gone."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsglang:")
    time.sleep(0.1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def endless(connection: socket.socket, _: str) -> None:
    """A hundred megabytes."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
    for _number in range(100):
        connection.sendall(b"#" * 1_000_000)


def by_path(answers: dict[str, Answer], otherwise: Answer) -> Answer:
    """Another answer for each path."""
    return lambda connection, path: answers.get(path, otherwise)(connection, path)


class Unruly:
    """Listens on one port of 127.0.0.1 while the block runs; `refuse` and `listen` close and open it."""

    def __init__(self, well: Answer) -> None:
        self._well = well
        self.answer = well
        self._port = 0
        self.listen()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def listen(self) -> None:
        """Take the port (again)."""
        self._listener = socket.create_server(("127.0.0.1", self._port), backlog=64)
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def refuse(self) -> None:
        """Let go of the port."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def mend(self) -> None:
        """Answer well again."""
        self.answer = self._well

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.refuse()

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = connection.recv(65536).decode("latin-1")
            self.answer(connection, [*request.split(" ", 2), "", ""][1])
