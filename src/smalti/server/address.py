"""Where the server listens."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from dataclasses import dataclass

from smalti.errors import UsageError

LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True, eq=False)
class Address:
    """A socket that listens, and how it was asked for."""

    listener: socket.socket
    host: str

    @property
    def ip(self) -> str:
        """The address it is bound to."""
        return str(self.listener.getsockname()[0])

    @property
    def port(self) -> int:
        """The port it is bound to."""
        return int(self.listener.getsockname()[1])

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.ip).is_loopback

    @property
    def url(self) -> str:
        """What to open in a browser."""
        host = socket.gethostname() if ipaddress.ip_address(self.ip).is_unspecified else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"


def listen(host: str, port: int) -> Address:
    """Bind to an address of this machine; port 0 is any that is free."""
    if not 0 <= port <= LARGEST_PORT:
        raise UsageError(f"--port {port}: give a number up to {LARGEST_PORT}, or 0 for any that is free")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise UsageError(f"--host {host}: no such host; give 127.0.0.1 or an address of this machine") from None
    family, kind, protocol, _, place = min(found, key=lambda one: one[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            # A port that was left a moment ago can be used again; one in use cannot.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(_explain(error, host, port)) from None
    return Address(listener, host)


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port {port}: is taken; give another one, or 0 for any that is free"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"--host {host}: is not an address of this machine; give 127.0.0.1 or one that is"
    return f"--host {host} --port {port}: cannot be used ({error.strerror}); give others"
