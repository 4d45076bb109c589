"""Calls between two processes of ours over a stream socket: a JSON header and byte blobs, length-prefixed. Both ends
are trusted; what a submission wrote travels as a blob and is not looked at here."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

HEAD = struct.Struct("<II")  # header bytes, number of blobs
SIZE = struct.Struct("<I")


class ConnectionLost(RuntimeError):
    """The other process is gone, or did not answer in time."""


def send(sock: socket.socket, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
    head = json.dumps(header).encode()
    parts = [HEAD.pack(len(head), len(blobs)), head]
    for blob in blobs:
        parts += (SIZE.pack(len(blob)), blob)
    try:
        sock.sendall(b"".join(parts))
    except OSError as error:
        raise ConnectionLost(str(error)) from error


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[bytes]] | None:
    """The next message; None when the other end has closed. Raises ConnectionLost at the socket's timeout."""
    head = _exactly(sock, HEAD.size)
    if head is None:
        return None
    size, count = HEAD.unpack(head)
    header = json.loads(_need(sock, size))
    blobs = [_need(sock, SIZE.unpack(_need(sock, SIZE.size))[0]) for _ in range(count)]
    return header, blobs


def _need(sock: socket.socket, size: int) -> bytes:
    data = _exactly(sock, size)
    if data is None:
        raise ConnectionLost("closed in the middle of a message")
    return data


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = sock.recv(min(size - len(data), 1 << 20))
        except OSError as error:
            raise ConnectionLost(str(error) or "no answer in time") from error
        if not chunk:
            if data:
                raise ConnectionLost("closed in the middle of a message")
            return None
        data += chunk
    return bytes(data)
