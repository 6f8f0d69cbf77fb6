"""One run: what goes in, what comes out, and what it leaves."""

from __future__ import annotations

import asyncio
import glob
from pathlib import Path

import pytest

from annabelle.core.errors import Conflict, InvalidArguments, NotAllowed, NotFound
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.isolation import process_tree
from annabelle.servers.kit import Call, ToolServer
from annabelle.servers.kit.call import enter_call
from servers.codexec.calling import MakeServer, come, gone
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-EXE")


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "import sys\nprint('grüße', 6 * 7)\nprint('err', file=sys.stderr)\nsys.exit(3)"),
        ("node", "console.log('grüße', 6 * 7); console.error('err'); process.exit(3)"),
        ("bash", "echo grüße $((6 * 7)); echo err >&2; exit 3"),
    ],
)
async def test_output_errors_and_exit_code_come_back(call: CallTool, language: str, code: str) -> None:
    result = await call("execute_code", language=language, code=code)
    assert (result.stdout, result.stderr, result.exit_code) == ("grüße 42\n", "err\n", 3)
    assert not result.timed_out
    assert result.killed is None
    assert "[exit code 3]" in result.to_text()


@pytest.mark.parametrize(
    "code",
    [
        "const os = require('node:os'); console.log(os.platform().length > 0)",
        "import os from 'node:os';\nconsole.log(os.platform().length > 0)",
        "const x = await Promise.resolve(true); console.log(x && require('node:os').platform().length > 0)",
    ],
)
async def test_node_code_runs_however_it_is_written(call: CallTool, code: str) -> None:
    assert (await call("execute_code", language="node", code=code)).stdout == "true\n"


async def test_an_error_in_the_code_names_its_line(call: CallTool) -> None:
    python = await call("execute_code", language="python", code="x = 1\nx / 0")
    node = await call("execute_code", language="node", code="const x = 1;\nx.y.z")
    assert "line 2" in python.stderr
    assert "ZeroDivisionError" in python.stderr
    assert "main.mjs:2" in node.stderr
    assert (python.exit_code, node.exit_code) == (1, 1)


@pytest.mark.incident("I-05")
async def test_no_part_of_a_call_is_read_by_a_shell(call: CallTool, workspace: Path) -> None:
    folder = "Data/$(touch hacked) && touch hacked; # `touch hacked`"
    (workspace / folder).mkdir(parents=True)
    args = ["$(touch hacked)", "; touch hacked", "&& touch hacked #", "`touch hacked`", "--version", "-c", "*"]
    await call("save_script", name="echo", description="", language="bash", code='printf "%s\\n" "$@"; pwd')
    result = await call("run_script", name="echo", args=args, working_dir=folder)
    assert result.stdout.splitlines()[:-1] == args
    assert result.stdout.splitlines()[-1].endswith(folder)
    assert not glob.glob("**/hacked", root_dir=workspace, recursive=True)


async def test_files_it_makes_are_brought_to_the_workspace(call: CallTool, workspace: Path) -> None:
    code = "import os\nos.mkdir('a')\nopen('a/ü.txt', 'w').write('one')\nopen('b.csv', 'w').write('1,2')"
    result = await call("execute_code", language="python", code=code)
    assert [path.rsplit("/", 1)[1] for path in result.artifacts] == ["ü.txt", "b.csv"]
    assert all(path.startswith("Code/results/") for path in result.artifacts)
    assert (workspace / result.artifacts[0]).read_text() == "one"
    assert (workspace / result.artifacts[1]).read_text() == "1,2"


async def test_a_folder_of_the_workspace_is_worked_in_at_its_own_place(call: CallTool, workspace: Path) -> None:
    (workspace / "Data/sums").mkdir(parents=True)
    (workspace / "Data/sums/in.txt").write_text("1 2 3")
    (workspace / "Data/sums/same.txt").write_text("same")
    code = (
        "import os\nopen('out.txt', 'w').write(str(sum(map(int, open('in.txt').read().split()))))\nprint(os.getcwd())"
    )
    result = await call("execute_code", language="python", code=code, working_dir="Data/sums")
    assert (workspace / "Data/sums/out.txt").read_text() == "6"
    assert result.artifacts == ["Data/sums/out.txt"]
    assert result.stdout.strip() == str(workspace / "Data/sums")


async def test_a_long_list_of_files_is_bounded(call: CallTool) -> None:
    code = "for n in range(80): open(f'{n}.txt', 'w').write('x')"
    result = await call("execute_code", language="python", code=code)
    assert len(result.artifacts) == 20
    assert result.artifacts_left_out == 60


@pytest.mark.parametrize("path", ["../outside", "/etc", "~/.ssh", "a\x00b", "Data/link"])
async def test_a_folder_out_of_bounds_is_refused(call: CallTool, workspace: Path, outside: Path, path: str) -> None:
    (workspace / "Data").mkdir(parents=True)
    (workspace / "Data/link").symlink_to(outside)
    with pytest.raises((NotAllowed, InvalidArguments)):
        await call("execute_code", language="bash", code="ls", working_dir=path)


async def test_a_folder_that_is_not_there_is_named(call: CallTool) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await call("execute_code", language="bash", code="ls", working_dir="Data/nowhere")


async def test_a_folder_above_or_below_one_that_is_in_use_is_refused(call: CallTool, workspace: Path) -> None:
    """Running code could put a link in its place between the look and the use."""
    (workspace / "Data/inner").mkdir(parents=True)
    session = await call("start_session", language="python", working_dir="Data")
    with pytest.raises(Conflict, match="above or below"):
        await call("execute_code", language="bash", code="ls", working_dir="Data/inner")
    listed = await call("execute_code", language="bash", code="ls", working_dir="Data")
    assert listed.stdout == "inner\n", listed
    await call("close_session", session_id=session.session_id)
    await call("start_session", language="python", working_dir="Data/inner")
    with pytest.raises(Conflict, match="above or below"):
        await call("execute_code", language="bash", code="ls", working_dir="Data")
    assert (await call("execute_code", language="bash", code="pwd", working_dir="Data/inner")).exit_code == 0


async def test_code_that_takes_too_long_is_ended(call: CallTool) -> None:
    result = await call("execute_code", language="bash", code="echo begun; sleep 31.4159", timeout_ms=1000)
    assert (result.timed_out, result.killed, result.exit_code) == (True, "time", None)
    assert result.stdout == "begun\n"
    assert "longer than it may" in result.to_text()
    assert gone("31.4159")


async def test_more_time_than_allowed_is_refused(call: CallTool) -> None:
    with pytest.raises(InvalidArguments, match="at most 300000"):
        await call("execute_code", language="bash", code="true", timeout_ms=300_001)


async def test_a_cancelled_call_leaves_no_process_and_no_folder(call: CallTool, code_config: CodeConfig) -> None:
    running = asyncio.create_task(call("execute_code", language="bash", code="sleep 27.1828"))
    assert await asyncio.to_thread(come, "27.1828")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone("27.1828")
    assert not list((code_config.data / "runs").iterdir())


async def test_long_output_is_shown_at_both_ends_and_kept_whole(call: CallTool, workspace: Path) -> None:
    code = "print('first')\nfor n in range(5000): print('line', n)\nprint('last')"
    result = await call("execute_code", language="python", code=code)
    assert len(result.stdout) < 10_200
    assert result.stdout.startswith("first")
    assert result.stdout.endswith("last\n")
    assert "left out" in result.stdout
    assert len((workspace / result.rest[0]).read_text().splitlines()) == 5002
    assert result.rest[0] in result.to_text()


async def test_bytes_that_are_no_text_and_null_bytes_are_shown(call: CallTool) -> None:
    result = await call("execute_code", language="bash", code=r"printf 'a\xff\x00b'")
    assert result.stdout == "a�\\x00b"


@pytest.mark.parametrize("code", ["print('a\x00b')", "\ufeffprint(1)", "\u202e", ""])
async def test_odd_code_is_an_answer_and_no_crash(call: CallTool, code: str) -> None:
    result = await call("execute_code", language="python", code=code)
    assert result.exit_code is not None


async def test_huge_code_runs_and_too_much_is_refused(call: CallTool) -> None:
    code = "x = '''" + "y" * 990_000 + "'''\nprint(len(x))"
    assert (await call("execute_code", language="python", code=code)).stdout == "990000\n"
    with pytest.raises(InvalidArguments, match="code"):
        await call("execute_code", language="python", code="#" * 1_000_001)


async def test_progress_is_told_while_it_runs(codexec: ToolServer) -> None:
    told: list[float] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        told.append(done)

    async def inside() -> None:
        enter_call(Call(_progress=note))
        await codexec.tools["execute_code"].call({"language": "bash", "code": "sleep 1.4"})

    await asyncio.create_task(inside())
    assert told


async def test_several_runs_at_once_do_not_meet(call: CallTool) -> None:
    async def one(number: int) -> str:
        code = f"open('same.txt', 'w').write('{number}')\nprint(open('same.txt').read(), end='')"
        return (await call("execute_code", language="python", code=code)).stdout

    assert await asyncio.gather(*(one(number) for number in range(4))) == ["0", "1", "2", "3"]


async def test_what_a_killed_server_left_is_cleared(call: CallTool, code_config: CodeConfig) -> None:
    left = code_config.data / "runs" / "999999999-00ff"
    (left / "work/closed").mkdir(parents=True)
    (left / "work/closed").chmod(0)
    await call("execute_code", language="bash", code="true")
    assert not left.exists()


async def test_the_home_is_private_to_each_run(call: CallTool) -> None:
    first = await call("execute_code", language="bash", code="echo x > ~/a; echo x > /tmp/b; ls ~ /tmp")
    second = await call("execute_code", language="bash", code="ls ~ /tmp/b")
    assert "a" in first.stdout
    assert second.stdout.split() == ["/tmp/home:"]
    assert "No such file" in second.stderr


async def test_a_network_that_is_allowed_can_be_used(make_server: MakeServer) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    code = f"import socket\nprint(socket.create_connection(('127.0.0.1', {port}), 5).recv(9))"
    result = await make_server(network=True).tools["execute_code"].call({"language": "python", "code": code})
    listener.close()
    await listener.wait_closed()
    assert result.stdout == "b'hello'\n"


async def test_where_no_tree_can_be_read_the_whole_group_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    process = await asyncio.create_subprocess_exec("sh", "-c", "sleep 137.035 & wait", start_new_session=True)
    assert await asyncio.to_thread(come, "sleep 137.035")
    monkeypatch.setattr(process_tree, "list_children", lambda _pid: [])
    process_tree.kill_tree(process.pid)
    await process.wait()
    assert await asyncio.to_thread(gone, "sleep 137.035")
