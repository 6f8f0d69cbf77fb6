"""Which layer is used, what each of them is told, and that without one nothing runs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.errors import InvalidArguments, Unavailable
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.isolation.backend import Mount, SandboxLimits, SandboxSpec
from annabelle.servers.codexec.isolation.bubblewrap import Bubblewrap, call_filter
from annabelle.servers.codexec.isolation.container import Container
from annabelle.servers.codexec.isolation.seatbelt import Seatbelt, profile
from annabelle.servers.codexec.isolation.selection import IsolationSelector
from annabelle.servers.codexec.languages import InterpreterFinder
from annabelle.servers.codexec.server import build
from servers.codexec.calling import MakeServer
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-EXE")

LIMITS = SandboxLimits(processes=32, memory_bytes=268_435_456, file_bytes=1_000_000, cpu_seconds=7)

OWN_PYTHON = Path(sys.base_prefix).resolve()


def cell_of(*mounts: Mount, network: bool = False, argv: tuple[str, ...] = ("true",)) -> SandboxSpec:
    return SandboxSpec(
        "annabelle-test", argv, mounts, "/work", {"PATH": "/usr/bin", "LANG": "C.UTF-8"}, LIMITS, network
    )


@pytest.fixture
def stranger_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach, which the tests' own folders are not when root runs them."""
    folder = Path(tempfile.mkdtemp(prefix="annabelle-cell-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def as_ordinary_user(command: list[str]) -> subprocess.CompletedProcess[str]:
    drop = ["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups"] if os.geteuid() == 0 else []
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    return subprocess.run([*drop, *command], capture_output=True, text=True, timeout=seconds(60), env=environment)


def calls_of(engine: Path) -> list[dict[str, list[str]]]:
    return [json.loads(line) for line in engine.read_text().splitlines()] if engine.exists() else []


def test_an_ordinary_user_gets_the_same_cell(stranger_folder: Path) -> None:
    code = """
import os
status = open('/proc/self/status').read()
print(os.getuid(), 'CapBnd:\\t0000000000000000' in status, 'NoNewPrivs:\\t1' in status)
for path in ('/planted', '/usr/planted', '/dev/planted', '/proc/sys/kernel/hostname', '/etc/planted'):
    try:
        open(path, 'w')
        print('wrote', path)
    except OSError:
        pass
open('/work/made', 'w').write('x')
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            os.read(os.pipe()[0], 1)
        made += 1
except OSError:
    print(20 < made < 40)
print(os.listdir('/sys') if os.path.exists('/sys') else 'no /sys', os.path.exists('/etc/passwd'))
"""
    cell = cell_of(Mount(stranger_folder, "/work", writable=True), argv=("/usr/bin/python3", "-c", code))
    done = as_ordinary_user(Bubblewrap(is_root=False).command(cell))
    assert done.stdout.splitlines() == ["65534 True True", "True", "no /sys False"], done.stderr
    assert (stranger_folder / "made").read_text() == "x"


def test_every_process_inside_has_the_limits_of_its_cell(stranger_folder: Path) -> None:
    code = """
from resource import *
for kind in (RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_NOFILE, RLIMIT_CORE):
    print(*getrlimit(kind))
"""
    cell = cell_of(Mount(stranger_folder, "/work", writable=True), argv=("/usr/bin/python3", "-c", code))
    done = as_ordinary_user(Bubblewrap(is_root=False).command(cell))
    limits = [str(limit) for limit in (LIMITS.memory_bytes, LIMITS.file_bytes, LIMITS.cpu_seconds, 1024, 0)]
    assert done.stdout.splitlines() == [f"{limit} {limit}" for limit in limits], done.stderr


def test_what_is_there_to_be_read_is_not_written_even_where_everybody_may(stranger_folder: Path) -> None:
    (stranger_folder / "main.py").write_text("kept")
    (stranger_folder / "main.py").chmod(0o666)
    code = "cat main.py; echo changed > main.py; touch planted"
    done = as_ordinary_user(
        Bubblewrap(is_root=False).command(cell_of(Mount(stranger_folder, "/work"), argv=("/bin/sh", "-c", code)))
    )
    assert done.stdout == "kept"
    assert done.stderr.count("Read-only file system") == 2
    assert [(file.name, file.read_text()) for file in stranger_folder.iterdir()] == [("main.py", "kept")]


def test_an_ordinary_user_can_not_make_namespaces_inside(stranger_folder: Path) -> None:
    cell = cell_of(Mount(stranger_folder, "/work", writable=True), argv=("/usr/bin/unshare", "-Ur", "/usr/bin/true"))
    assert as_ordinary_user(Bubblewrap(is_root=False).command(cell)).returncode != 0


def test_the_kernel_counts_only_where_it_counts_the_cell_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's own programs would use up the limit, and code could not start a single process."""
    limit = "--nproc=32"
    assert limit in Bubblewrap(is_root=False).command(cell_of())
    assert limit in Bubblewrap(is_root=True).command(cell_of())
    monkeypatch.setattr("annabelle.servers.codexec.isolation.bubblewrap._kernel_version", lambda: (5, 10))
    assert limit not in Bubblewrap(is_root=False).command(cell_of())


def _verdict(program: bytes, number: int, family: int, architecture: int) -> int:
    """What the kernel would answer: the few steps a filter is made of, done one by one."""
    steps = [struct.unpack_from("=HBBI", program, start) for start in range(0, len(program), 8)]
    data, at, held = {0: number, 4: architecture, 16: family}, 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            held = data[value]
        else:
            hit = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            at += if_true if hit else if_false


@pytest.mark.req("SRV-EXE")
@pytest.mark.parametrize(("machine", "architecture", "calls"), [
    ("x86_64", 0xC000003E, (41, 53)), ("aarch64", 0xC00000B7, (198, 199)),
])  # fmt: skip
@pytest.mark.parametrize(("network", "allowed"), [(False, {1}), (True, {1, 2, 10, 16})])
def test_only_local_sockets_and_those_of_an_allowed_network_are_made(
    machine: str, architecture: int, calls: tuple[int, int], network: bool, allowed: set[int]
) -> None:
    program = call_filter(machine, network=network)
    assert program is not None
    for number in calls:
        made = {one for one in range(64) if _verdict(program, number, one, architecture) == 0x7FFF0000}
        assert made == allowed
    assert _verdict(program, 1, 40, architecture) == 0x7FFF0000  # another call with the same first argument


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_jumps_only_to_its_own_steps(machine: str) -> None:
    program = call_filter(machine)
    assert program is not None
    steps = [struct.unpack_from("=HBBI", program, start) for start in range(0, len(program), 8)]
    assert steps[-1] == (0x06, 0, 0, 0x7FFF0000), "what is not refused is allowed"
    for position, (_, if_true, if_false, _) in enumerate(steps):
        assert position + 1 + max(if_true, if_false) < len(steps) or position == len(steps) - 1
    assert call_filter("pdp11") is None


def test_bubblewrap_is_told_to_share_nothing(tmp_path: Path) -> None:
    for is_root in (True, False):
        command = Bubblewrap(is_root=is_root).command(cell_of(Mount(tmp_path, "/work", writable=True)))
        for word in ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session"):
            assert word in command
        assert ("setpriv" in " ".join(command)) is is_root
        assert ("--unshare-user" in command) is not is_root
        assert "--cpu=7" in command
        assert command[-1] == "true"
    assert "--unshare-net" not in Bubblewrap().command(cell_of(network=True))


def test_root_never_runs_code_as_root(tmp_path: Path) -> None:
    """Mapped to root by a user namespace, code could write to /proc/sys; so root gives up its user instead."""
    command = Bubblewrap(is_root=True).command(cell_of())
    user = command[command.index("--reuid") + 1]
    assert user == "65534"


def test_the_seatbelt_profile_starts_from_nothing(tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" \\ folder'
    cell = cell_of(Mount(odd, "/work", writable=True), Mount(tmp_path / "code", "/code"))
    lines = profile(cell).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "(deny network*)" in lines
    written = next(line for line in lines if "file-write*" in line)
    read = next(line for line in lines if "file-read* " in line)
    assert 'a \\"quoted\\" \\\\ folder")' in written
    assert str(tmp_path / "code") in read
    assert str(tmp_path / "code") not in written
    assert "/Users" not in profile(cell)
    assert "(allow network*)" in profile(replace(cell, network=True))


def test_seatbelt_hands_everything_over_as_arguments(tmp_path: Path) -> None:
    layer = Seatbelt(which=lambda name: f"/usr/bin/{name}", platform="darwin")
    cell = cell_of(Mount(tmp_path, "/work", writable=True), argv=("python3", "$(touch x)"))
    command = layer.command(cell)
    assert layer.missing() is None
    assert command[0] == "/usr/bin/sandbox-exec"
    assert command[-2:] == ["python3", "$(touch x)"]
    assert "touch" not in command[command.index("-c") + 1]
    assert layer.place(cell.mounts[0]) == str(tmp_path)
    assert Seatbelt(platform="linux").missing()


def test_a_container_is_told_to_share_nothing(tmp_path: Path) -> None:
    layer = Container("docker", "languages:1", which=lambda name: f"/usr/bin/{name}")
    command = layer.command(cell_of(Mount(tmp_path, "/work", writable=True), Mount(tmp_path / "code", "/code")))
    text = " ".join(command)
    for words in (
        "--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--pids-limit 32",
        "--memory 268435456b --memory-swap 268435456b", "--ulimit core=0", "--pull=never", "--workdir /work",
        f"--mount type=bind,source={tmp_path},target=/work --mount", "target=/code,readonly", "languages:1 true",
    ):  # fmt: skip
        assert words in text
    assert "--user 0" not in text
    assert layer.stop_command(cell_of()) == ["/usr/bin/docker", "kill", "annabelle-test"]


@pytest.mark.incident("I-05")
def test_a_path_can_not_name_another_folder_to_a_container(tmp_path: Path) -> None:
    layer = Container("docker", "languages:1")
    with pytest.raises(InvalidArguments, match="comma"):
        layer.command(cell_of(Mount(tmp_path / "a,source=/etc", "/work", writable=True)))


@pytest.mark.parametrize(
    ("engine", "image", "said"),
    [
        ("", "x", "no container engine"),
        ("docker", "", "no container engine"),
        ("rm", "x", "neither"),
        ("podman", "-v", "not the name"),
    ],
)
def test_a_container_that_is_not_set_up_is_not_tried(engine: str, image: str, said: str) -> None:
    assert said in (Container(engine, image, which=lambda name: "/bin/true").missing() or "")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker that writes down how it was called, and runs what follows the image."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        f"log = open({str(tmp_path / 'calls.jsonl')!r}, 'a')\n"
        "log.write(json.dumps({'argv': sys.argv[1:], 'env': sorted(os.environ)}) + '\\n')\n"
        "log.close()\n"
        "rest = sys.argv[sys.argv.index('languages:1') + 1:] if 'languages:1' in sys.argv else ['true']\n"
        "if rest[0] == 'python3': print('ran in a container'); sys.exit(0)\n"
        "os.execvp(rest[0], rest)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "calls.jsonl"


async def test_code_runs_in_the_container_that_is_set(
    make_server: MakeServer, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sesame")
    server = make_server(isolation="container", engine="docker", image="languages:1")
    result = await server.tools["execute_code"].call({"language": "python", "code": "print(1)"})
    calls = calls_of(engine)
    assert result.stdout == "ran in a container\n"
    assert calls[0]["argv"][-1] == "true", "it is tried first"
    run = calls[1]["argv"]
    assert run[run.index("languages:1") + 1 :] == ["python3", "-u", "-B", "-X", "utf8", "/code/main.py"]
    assert "GROQ_API_KEY" not in calls[1]["env"]


async def test_a_container_is_ended_by_its_engine_when_the_time_is_over(make_server: MakeServer, engine: Path) -> None:
    server = make_server(isolation="container", engine="docker", image="languages:1")
    arguments = {"language": "bash", "code": "sleep 60", "timeout_ms": 3000}
    # The stand-in has no /code inside, so the bash it becomes is given a program that waits.
    engine.parent.joinpath("bin/bash").write_text("#!/bin/sh\nexec sleep 60\n")
    engine.parent.joinpath("bin/bash").chmod(0o755)
    result = await server.tools["execute_code"].call(arguments)
    calls = [made["argv"] for made in calls_of(engine)]
    assert result.timed_out
    assert calls[-1] == ["kill", calls[-2][calls[-2].index("--name") + 1]]


async def test_without_any_layer_nothing_runs_and_the_remedy_is_named(
    code_config: CodeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Bubblewrap(which=lambda name: None)
    server = build(code_config, IsolationSelector(code_config, [absent, Container("", "")]))
    monkeypatch.chdir(tmp_path)
    for name, arguments in (
        ("execute_code", {"language": "bash", "code": "touch ran"}),
        ("start_session", {"language": "python"}),
        ("send_to_session", {"language": "node", "code": "1"}),
        ("install_package", {"language": "python", "package": "six"}),
        ("save_and_run_script", {"name": "a", "description": "", "language": "bash", "code": "touch ran"}),
    ):
        with pytest.raises(Unavailable, match="nothing here can keep it apart") as caught:
            await server.tools[name].call(arguments)
        assert "apt-get install bubblewrap" in (caught.value.hint or "")
    ready = await server.tools["readiness"].call({})
    assert not ready.ready
    assert "apt-get install bubblewrap" in ready.missing
    assert (await server.tools["calculate"].call({"code": "6 * 7"})).value == "42"
    assert (await server.tools["get_script"].call({"name": "a"})).code == "touch ran"
    assert not [name for name in os.listdir(tmp_path) if name == "ran"]
    await server.close()


async def test_a_layer_that_is_there_but_does_not_work_is_passed_over(code_config: CodeConfig, engine: Path) -> None:
    broken = Bubblewrap(which=lambda name: "/usr/bin/false")
    isolation = IsolationSelector(code_config, [broken, Container("docker", "languages:1")])
    assert (await isolation.layer()).name == "container"
    only = IsolationSelector(code_config, [broken])
    with pytest.raises(Unavailable, match="may not make a cell"):
        await only.layer()


async def test_a_layer_is_tried_once_and_not_before_it_is_needed(code_config: CodeConfig, engine: Path) -> None:
    config = replace(code_config, isolation="container", engine="docker", image="languages:1")
    server = build(config)
    assert calls_of(engine) == []
    assert (await server.tools["readiness"].call({})).ready
    assert (await server.tools["readiness"].call({})).ready
    assert len(calls_of(engine)) == 1


async def test_a_python_of_another_place_is_brought_along(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no Python, the one Annabelle runs on is used, wherever it is installed."""
    monkeypatch.setattr("annabelle.servers.codexec.languages._SYSTEM_PYTHON", Path("/nowhere/python3"))
    code = """
import sys, json, ssl
print(sys.version_info[:2], sys.base_prefix)
try:
    import annabelle
except ImportError:
    print('bare')
"""
    result = await make_server().tools["execute_code"].call({"language": "python", "code": code})
    assert result.stdout.splitlines() == [f"{sys.version_info[:2]} {OWN_PYTHON}", "bare"]


def test_a_lone_program_is_brought_along_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node in the bin folder of somebody's home must not show the home."""
    own = tmp_path / "person/bin/node"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"\x7fELF")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(own.parent))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    program = InterpreterFinder(Bubblewrap()).interpreter("node")
    assert program.mounts == (Mount(own.resolve(), str(own.resolve())),)
    (tmp_path / "person/lib/node_modules").mkdir(parents=True)
    assert InterpreterFinder(Bubblewrap()).interpreter("node").mounts == program.mounts
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: Path("/somewhere/else"))
    assert InterpreterFinder(Bubblewrap()).interpreter("node").mounts == (
        Mount(tmp_path / "person", str(tmp_path / "person")),
    )


def test_a_language_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("annabelle.servers.codexec.languages._MORE_PLACES", ())
    with pytest.raises(Unavailable, match="node is not installed") as caught:
        InterpreterFinder(Bubblewrap()).interpreter("node")
    assert "apt-get install nodejs" in (caught.value.hint or "")
