"""No test reaches beyond loopback, child processes included."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support import network
from support.timing import seconds

# An address that is routed nowhere, so that a hole in the isolation would hang or time out, not reach anyone.
OUTSIDE = ("192.0.2.1", 9)
PROBE = f"""
import errno, socket, sys
try:
    socket.create_connection({OUTSIDE!r}, timeout=5)
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), timeout=5).close()
print("loopback works")
"""


def probe(*argv: str | Path) -> list[str]:
    done = subprocess.run([*argv, sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=seconds(60))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.req("PKG-01")
def test_a_child_process_of_a_test_can_not_connect_outside_and_can_connect_to_loopback():
    assert probe() == ["ENETUNREACH", "loopback works"]


@pytest.mark.req("PKG-01")
def test_a_command_started_in_isolation_can_not_connect_outside(root: Path):
    assert probe(sys.executable, root / "scripts" / "isolated.py") == ["ENETUNREACH", "loopback works"]


def test_inside_the_namespace_there_is_no_other_interface():
    names = {name for _, name in socket.if_nameindex()}
    assert names == {"lo"} or os.environ["ANNABELLE_TEST_NETWORK"] == "guard"


@pytest.mark.parametrize("command", [[], ["no-such-program-anywhere"]])
def test_a_command_that_can_not_be_started_is_named(root: Path, command: list[str]):
    done = subprocess.run([sys.executable, root / "scripts" / "isolated.py", *command], capture_output=True, text=True)
    assert done.returncode in (2, 127)
    assert "no-such-program-anywhere" in done.stderr or "usage" in done.stderr


def test_what_tests_write_into_memory_is_seen_by_no_other_process(root: Path):
    show = "import os; print(os.environ.get('PYTEST_DEBUG_TEMPROOT', 'none'))"
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_DEBUG_TEMPROOT"}
    command = [sys.executable, root / "scripts" / "isolated.py", sys.executable, "-c", show]
    folder = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert folder == "none" or not Path(folder).exists()


class TestGuard:
    """What holds Python processes back where no namespace is to be had."""

    @pytest.fixture(autouse=True)
    def _guarded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        network.guard(monkeypatch.setattr)

    def test_connecting_outside_fails_at_once(self):
        with socket.socket() as outside, pytest.raises(OSError, match="keep to loopback") as caught:
            outside.connect(OUTSIDE)
        assert caught.value.errno == errno.ENETUNREACH
        with socket.socket() as outside:
            assert outside.connect_ex(OUTSIDE) == errno.ENETUNREACH

    def test_sending_a_datagram_outside_fails(self):
        with socket.socket(type=socket.SOCK_DGRAM) as outside, pytest.raises(OSError, match="keep to loopback"):
            outside.sendto(b"x", OUTSIDE)

    def test_a_name_outside_is_not_looked_up(self):
        with pytest.raises(socket.gaierror):
            socket.getaddrinfo("example.org", 80)

    def test_loopback_and_unix_sockets_work(self, tmp_path: Path):
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(str(tmp_path / "s"))
            server.listen()
            client.connect(str(tmp_path / "s"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", b"localhost", None, "fe80::1%lo"])
def test_these_hosts(host: object):
    assert network.is_local_host(host) == (host != "fe80::1%lo")


@pytest.mark.parametrize("host", ["8.8.8.8", "2001:db8::1", "localhost.example.org", "127.0.0.1.nip.io", "10.0.0.1"])
def test_these_hosts_are_outside(host: str):
    assert not network.is_local((host, 80))
