"""Where the server listens, and what is said of an address that cannot be used."""

from __future__ import annotations

import socket

import pytest

from smalti.errors import UsageError
from smalti.server.serving import listen


def test_port_0_is_one_that_is_free_and_listens_at_once():
    address = listen("127.0.0.1", 0)
    with address.listener:
        assert address.url == f"http://127.0.0.1:{address.port}/"
        socket.create_connection(("127.0.0.1", address.port)).close()


def test_a_taken_port_is_said_in_one_line():
    taken = listen("127.0.0.1", 0)
    with taken.listener, pytest.raises(UsageError, match=f"--port {taken.port}: is in use; give another one"):
        listen("127.0.0.1", taken.port)


def test_a_port_that_was_just_left_can_be_used_again():
    first = listen("127.0.0.1", 0)
    port = first.port
    with socket.create_connection(("127.0.0.1", port)), first.listener:
        accepted, _ = first.listener.accept()
        accepted.close()
    listen("127.0.0.1", port).listener.close()


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_does_not_exist_is_refused(port):
    with pytest.raises(UsageError, match=f"--port {port}: give a number up to 65535"):
        listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no such host", "a" * 70])
def test_a_host_that_does_not_exist_is_refused(host):
    with pytest.raises(UsageError, match="no such host"):
        listen(host, 0)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(UsageError, match=r"--host 192.0.2.1: is not an address of this machine"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize(("host", "is_local"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)])
def test_only_a_loopback_address_is_local(host, is_local):
    address = listen(host, 0)
    with address.listener:
        assert address.is_local == is_local


def test_on_all_addresses_the_machine_is_called_by_its_name():
    address = listen("0.0.0.0", 0)
    with address.listener:
        assert address.url == f"http://{socket.gethostname()}:{address.port}/"
