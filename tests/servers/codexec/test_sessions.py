"""Interpreters that are kept alive."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import anyio
import pytest

from annabelle.core.errors import InvalidArguments, NotFound, TooManyRequests, Unavailable
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.session_interpreter import DriverFrames, read_answer
from servers.codexec.calling import CallAs, MakeServer, come, eventually, gone
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-EXE")


@pytest.mark.parametrize(
    ("language", "pieces", "value"),
    [
        ("python", ["import math\nx = 20", "def double(n):\n    return n * 2", "double(x) + math.floor(2.5)"], "42"),
        (
            "python",
            ["import asyncio", "async def f():\n    await asyncio.sleep(0)\n    return 'a'", "await f()"],
            "'a'",
        ),
        ("python", ["class A: pass", "import pickle", "type(pickle.loads(pickle.dumps(A()))).__name__"], "'A'"),
        ("node", ["const os = require('node:os'); let x = 40", "function add(n) { return x + n }", "add(2)"], "42"),
        ("node", ["const y = await Promise.resolve(41)", "(await import('node:path')).sep + (y + 1)"], "'/42'"),
    ],
)
async def test_a_session_remembers(call: CallTool, language: str, pieces: list[str], value: str) -> None:
    session = (await call("start_session", language=language)).session_id
    for piece in pieces[:-1]:
        assert (await call("send_to_session", session_id=session, code=piece)).error is None
    result = await call("send_to_session", session_id=session, code=pieces[-1])
    assert (result.value, result.exit_code) == (value, 0)
    assert result.to_text() == f"=> {value}"


@pytest.mark.parametrize(
    ("language", "wrong", "error", "after"),
    [
        ("python", "1 / 0", "ZeroDivisionError: division by zero", "1 + 1"),
        ("python", "def (", "SyntaxError: invalid syntax", "1 + 1"),
        ("python", "import sys; sys.exit(4)", "SystemExit: 4", "1 + 1"),
        ("python", "input()", "EOFError: EOF when reading a line", "1 + 1"),
        ("node", "throw new Error('no')", "Error: no", "1 + 1"),
        ("node", "await Promise.reject(new TypeError('no'))", "TypeError: no", "1 + 1"),
        ("node", "throw null", "Uncaught null", "1 + 1"),
        ("node", "throw undefined", "Uncaught undefined", "1 + 1"),
        ("node", "throw 0", "Uncaught 0", "1 + 1"),
        ("node", "throw 'no'", "Uncaught 'no'", "1 + 1"),
        ("node", "await Promise.reject()", "Uncaught undefined", "1 + 1"),
        ("node", "await Promise.resolve(1); throw null", "Uncaught null", "1 + 1"),
        ("node", "function (", "SyntaxError: Function statements require a function name", "1 + 1"),
    ],
)
async def test_an_error_ends_the_code_and_not_the_session(
    call: CallTool, language: str, wrong: str, error: str, after: str
) -> None:
    failed = await call("send_to_session", language=language, code=wrong)
    fine = await call("send_to_session", session_id=failed.session_id, code=after)
    assert (failed.error, failed.exit_code, failed.session_gone) == (error, 1, False)
    assert failed.stderr
    assert fine.value == "2"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("undefined", None), ("await undefined", None), ("null", "null"), ("await null", "null"),
        ("try { throw null } catch {}", None), ("await Promise.reject().catch(() => 3)", "3"),
    ],
)  # fmt: skip
async def test_code_that_throws_nothing_is_no_error(call: CallTool, code: str, value: str | None) -> None:
    result = await call("send_to_session", language="node", code=code)
    assert (result.value, result.error, result.exit_code) == (value, None, 0)


async def test_output_stays_with_the_code_that_made_it(call: CallTool) -> None:
    code = "import sys\nprint('out', end='')\nprint('err', file=sys.stderr, end='')"
    first = await call("send_to_session", language="python", code=code)
    second = await call("send_to_session", language="python", code="print('second')")
    assert (first.stdout, first.stderr) == ("out", "err")
    assert (second.stdout, second.stderr) == ("second\n", "")
    assert first.session_id == second.session_id


@pytest.mark.parametrize("language", ["python", "node"])
async def test_no_print_passes_for_an_answer(call: CallTool, language: str) -> None:
    said = '\x1e0123456789abcdef0123456789abcdef{"value": "forged"}\n'
    code = f"print({said!r})" if language == "python" else f"console.log({said!r})"
    result = await call("send_to_session", language=language, code=code)
    assert "forged" in result.stdout
    assert result.value is None


@pytest.mark.parametrize(
    ("language", "endless"),
    [
        ("python", "x = 7\nwhile True: pass"),
        ("python", "x = 7\nimport time\ntime.sleep(60)"),
        ("node", "var x = 7; while (true) {}"),
        ("node", "var x = 7; await new Promise(() => setTimeout(() => {}, 60000))"),
    ],
)
async def test_code_that_takes_too_long_is_stopped_and_the_session_kept(
    call: CallTool, language: str, endless: str
) -> None:
    stopped = await call("send_to_session", language=language, code=endless, timeout_ms=800)
    after = await call("send_to_session", session_id=stopped.session_id, code="x")
    assert (stopped.interrupted, stopped.timed_out, stopped.session_gone) == (True, True, False)
    assert "still open" in stopped.to_text()
    assert after.value == "7"


async def test_code_that_does_not_stop_takes_its_session_along(call: CallTool) -> None:
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    result = await call("send_to_session", language="python", code=code, timeout_ms=800)
    assert (result.session_gone, result.killed) == (True, "time")
    assert "start a new one" in result.to_text()
    assert (await call("list_sessions")).sessions == []


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "import os\nprint('last words', flush=True)\nos.abort()"),
        ("node", "console.log('last words'); process.abort()"),
    ],
)
async def test_an_interpreter_that_crashes_says_so(call: CallTool, language: str, code: str) -> None:
    result = await call("send_to_session", language=language, code=code)
    assert result.session_gone
    assert "last words" in result.stdout
    assert (await call("list_sessions")).sessions == []
    with pytest.raises(NotFound, match="no session"):
        await call("send_to_session", session_id=result.session_id, code="1")


async def test_two_pieces_at_once_come_one_after_the_other(call: CallTool) -> None:
    session = (await call("start_session", language="python")).session_id
    await call("send_to_session", session_id=session, code="import time\nseen = []")

    async def send(number: int) -> None:
        code = f"seen.append({number})\ntime.sleep(0.02)\nseen.append({number})"
        await call("send_to_session", session_id=session, code=code)

    await asyncio.gather(*(send(number) for number in range(4)))
    seen = eval((await call("send_to_session", session_id=session, code="seen")).value)
    assert seen[::2] == seen[1::2]
    assert sorted(seen[::2]) == [0, 1, 2, 3]


async def test_a_session_can_be_called_by_its_name_or_language(call: CallTool) -> None:
    named = await call("start_session", language="node", name="my tool")
    assert (await call("send_to_session", session_id="my tool", code="1")).session_id == named.session_id
    assert (await call("send_to_session", language="node", code="2")).session_id == named.session_id
    assert (await call("send_to_session", code="2")).session_id == named.session_id
    with pytest.raises(InvalidArguments, match="speaks node"):
        await call("send_to_session", session_id="my tool", language="python", code="2")
    with pytest.raises(InvalidArguments, match="already"):
        await call("start_session", language="node", name="my tool")


async def test_of_two_sessions_started_at_once_only_one_gets_the_name(call: CallTool) -> None:
    started = await asyncio.gather(
        *(call("start_session", language="python", name="same") for _ in range(2)), return_exceptions=True
    )
    assert [isinstance(one, InvalidArguments) for one in started].count(True) == 1
    assert len((await call("list_sessions")).sessions) == 1


async def test_without_a_session_a_language_is_needed(call: CallTool) -> None:
    with pytest.raises(InvalidArguments, match="No session is open"):
        await call("send_to_session", code="1")


async def test_sessions_belong_to_one_agent(call_as: CallAs) -> None:
    mine = await call_as("one", "start_session", language="python", name="mine")
    assert [session.name for session in (await call_as("one", "list_sessions")).sessions] == ["mine"]
    assert (await call_as("two", "list_sessions")).sessions == []
    for name in ("send_to_session", "close_session"):
        more = {"code": "1"} if name == "send_to_session" else {}
        with pytest.raises(NotFound):
            await call_as("two", name, session_id=mine.session_id, **more)


async def test_only_so_many_are_open_and_closing_makes_room(make_server: MakeServer) -> None:
    tools = make_server(max_sessions=1).tools
    first = await tools["start_session"].call({"language": "python"})
    with pytest.raises(TooManyRequests, match="already 1"):
        await tools["start_session"].call({"language": "python"})
    await tools["close_session"].call({"session_id": first.session_id})
    assert await tools["start_session"].call({"language": "python"})


async def test_an_idle_session_is_closed_with_all_it_holds(make_server: MakeServer, code_config: CodeConfig) -> None:
    tools = make_server(idle_seconds=0.2).tools
    await tools["start_session"].call({"language": "python"})
    assert await asyncio.to_thread(gone, "/code/session.py")
    await eventually(lambda: os.listdir(code_config.data / "runs") == [])
    assert (await tools["list_sessions"].call({})).sessions == []


async def test_a_session_that_grows_while_nobody_looks_is_ended(
    make_server: MakeServer, code_config: CodeConfig
) -> None:
    tools = make_server(memory_mb=150).tools
    code = """
import os, time
for number in range(4):
    if os.fork() == 0:
        time.sleep(0.3)
        held = b'x' * 60_000_000
        time.sleep(60)
"""
    await tools["send_to_session"].call({"language": "python", "code": code})
    assert await asyncio.to_thread(gone, "/code/session.py")
    await eventually(lambda: os.listdir(code_config.data / "runs") == [])
    assert (await tools["list_sessions"].call({})).sessions == []


async def test_closing_a_busy_session_ends_its_code(call: CallTool) -> None:
    session = (await call("start_session", language="python")).session_id
    code = "import subprocess\nsubprocess.run(['sleep', '299.792'])"
    sending = asyncio.create_task(call("send_to_session", session_id=session, code=code))
    assert await asyncio.to_thread(come, "299.792")
    assert (await call("list_sessions")).sessions[0].busy
    await call("close_session", session_id=session)
    result = await sending
    assert result.session_gone
    assert await asyncio.to_thread(gone, "299.792")


async def test_a_cancelled_piece_is_interrupted_and_the_session_kept(call: CallTool) -> None:
    session = (await call("start_session", language="python")).session_id
    code = "x = 1\nimport subprocess\nsubprocess.run(['sleep', '662.607'])"
    async with anyio.create_task_group() as tg:  # as the protocol cancels: again and again, until it is left
        tg.start_soon(lambda: call("send_to_session", session_id=session, code=code))
        assert await asyncio.to_thread(come, "662.607")
        tg.cancel_scope.cancel()
    assert (await call("send_to_session", session_id=session, code="x")).value == "1"


async def test_files_a_session_makes_are_brought_to_the_workspace_once(call: CallTool, workspace: Path) -> None:
    first = await call("send_to_session", language="python", code="_ = open('a.txt', 'w').write('one')")
    second = await call("send_to_session", language="python", code="open('a.txt').read()")
    assert (workspace / first.artifacts[0]).read_text() == "one"
    assert second.value == "'one'"
    assert second.artifacts == []


async def test_a_session_works_in_a_folder_of_the_workspace(call: CallTool, workspace: Path) -> None:
    (workspace / "Code/python").mkdir(parents=True)
    (workspace / "Code/python/mine.py").write_text("value = 42")
    await call("start_session", language="python", working_dir="Code/python")
    result = await call("send_to_session", code="import mine\nopen('b.txt', 'w').close()\nmine.value")
    assert (result.value, result.artifacts) == ("42", ["Code/python/b.txt"])
    assert (await call("list_sessions")).sessions[0].working_dir == "Code/python"


async def test_a_flood_in_a_session_is_cut_off(call: CallTool) -> None:
    result = await call("send_to_session", language="python", code="while True: print('flood ' * 1000)")
    assert (result.killed, result.session_gone) == ("output", True)


async def test_forged_answers_do_not_pile_up(call: CallTool, code_config: CodeConfig) -> None:
    code = """
import os, sys
frame = sys._getframe()
while 'mark' not in frame.f_locals:
    frame = frame.f_back
while True:
    os.write(1, (frame.f_locals['mark'] + '{}\\n').encode() * 100)
"""
    await call("send_to_session", language="python", code=code)
    assert await asyncio.to_thread(gone, "/code/session.py")
    await eventually(lambda: os.listdir(code_config.data / "runs") == [])


async def test_a_long_value_is_cut(call: CallTool) -> None:
    result = await call("send_to_session", language="python", code="list(range(100_000))")
    assert len(result.value) < 10_200


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_a_mark_is_found_wherever_the_stream_is_cut(step: int) -> None:
    printed, answers = bytearray(), list[bytes]()
    frames = DriverFrames(b"\x1eword", printed.extend, answers.append)
    stream = b'a\x1ewo\x1e\x1eword{"value": 1}\nb\x1eword\n\x1ewor'
    for start in range(0, len(stream), step):
        frames.feed(stream[start : start + step])
    frames.close()
    assert bytes(printed) == b"a\x1ewo\x1eb\x1ewor"
    assert answers == [b'{"value": 1}', b""]


@pytest.mark.parametrize("line", [b"", b"not json", b"[1]", b"\xff"])
def test_an_answer_the_code_has_spoilt_is_an_empty_one(line: bytes) -> None:
    assert read_answer(line) == {}


async def test_a_session_that_can_not_start_leaves_nothing(
    make_server: MakeServer, code_config: CodeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annabelle.servers.codexec.languages._PYTHON", ("--no-such-option",))
    tools = make_server().tools
    with pytest.raises(Unavailable, match="did not start"):
        await tools["start_session"].call({"language": "python"})
    assert os.listdir(code_config.data / "runs") == []
    assert (await tools["list_sessions"].call({})).sessions == []
