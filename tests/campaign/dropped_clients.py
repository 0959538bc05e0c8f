"""Clients of the annotator that fall silent in the middle of a request, and streams of events that are dropped."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path

import numpy as np

from tests.campaign.attacked_server import serving
from tests.campaign.hostile_requests import REQUESTS, compose, packed
from tests.campaign.tally import Tally

SILENT_SECONDS = 3.0
STREAMS_AT_ONCE = 25


def fall_silent(count: int, seed: int, folder: Path) -> Tally:
    """Open connections that send half a request and then nothing; they are still open when the server is ended."""
    tally = Tally("slow clients")
    silent = []
    with serving(folder, tally) as server:
        for number in range(seed, seed + count):
            rng = np.random.default_rng(number)
            method, path, body = REQUESTS[rng.integers(len(REQUESTS))]
            content = compose(method, path, packed(body) or b"{}", server.port)
            connection = server.connect()
            connection.sendall(content[: rng.integers(len(content))])
            silent.append(connection)
            tally.count("waited for")
            if wrong := server.look():
                tally.failures.append(f"seed {number}: after {len(silent)} silent clients, {wrong}")
        time.sleep(SILENT_SECONDS)
        if wrong := server.look():
            tally.failures.append(f"seed {seed}: after {len(silent)} silent clients and some time, {wrong}")
    for connection in silent:
        connection.close()
    return tally


def drop_streams(count: int, seed: int, folder: Path) -> Tally:
    """Open streams of events and drop them, some at once, some after the first event, politely or not."""
    tally = Tally("dropped streams")
    with serving(folder, tally) as server:
        opened = []
        for number in range(seed, seed + count):
            rng = np.random.default_rng(number)
            connection = server.connect()
            connection.sendall(compose("GET", "/api/events", b"", server.port))
            if rng.random() < 0.7 and b"200" not in connection.recv(1000):
                tally.failures.append(f"seed {number}: no stream is opened")
            if rng.random() < 0.5:  # closed by a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            opened.append(connection)
            tally.count("dropped")
            if len(opened) >= STREAMS_AT_ONCE:
                for one in opened:
                    one.close()
                opened = []
                if wrong := server.look():
                    tally.failures.append(f"seed {number}: after dropped streams, {wrong}")
        for one in opened:
            one.close()
        if wrong := server.look():
            tally.failures.append(f"seed {seed}: after all streams, {wrong}")
    return tally
