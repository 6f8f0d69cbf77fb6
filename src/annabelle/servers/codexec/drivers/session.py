"""Python session: reads pieces of code, runs each in the same namespace and reports when it is done.

Runs inside the sandbox, with whatever Python is there. Requests are lines of JSON. Output of the code is passed on
unchanged. An answer follows a mark that only this file and the server know, so no print can imitate one.
"""

import ast
import asyncio
import contextlib
import json
import linecache
import os
import signal
import sys
import traceback
import types

MOST_SHOWN = 20_000


def main() -> None:
    requests = open(os.dup(0), encoding="utf-8")  # noqa: SIM115  stays open for the whole session
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # input() must see the end, not the next request
    os.close(nothing)
    mark = "\x1e" + requests.readline().strip()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.path[0] = os.getcwd()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    say(mark, {"ready": True})
    for number, line in enumerate(requests, start=1):
        answer = run(json.loads(line)["code"], f"<{number}>", module.__dict__, loop)
        say(mark, answer)


def say(mark: str, answer: "dict[str, object]") -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    write(2, mark + "\n")
    write(1, mark + json.dumps(answer) + "\n")


def write(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(descriptor, data) :]


def run(code: str, name: str, space: "dict[str, object]", loop: asyncio.AbstractEventLoop) -> "dict[str, object]":
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        value = evaluate(code, name, space, loop)
        shown = None if value is None else repr(value)[:MOST_SHOWN]
        if value is not None:
            space["_"] = value
        return {"value": shown}
    except KeyboardInterrupt:
        return {"error": "KeyboardInterrupt: interrupted", "interrupted": True}
    except BaseException as error:  # noqa: BLE001  exit() in the code ends the code, not the session
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        kind, trace = type(error), error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace)
        return {"error": traceback.format_exception_only(kind, error)[-1].strip()[:MOST_SHOWN]}
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def evaluate(code: str, name: str, space: "dict[str, object]", loop: asyncio.AbstractEventLoop) -> object:
    """Run all statements and return the value of the last one if it is an expression. Allows top-level `await`."""
    tree = ast.parse(code, name)
    final = tree.body[-1] if tree.body else None
    last = final if isinstance(final, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    step(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space, loop)
    if last is None:
        return None
    return step(compile(ast.Expression(last.value), name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space, loop)


def step(code: types.CodeType, space: "dict[str, object]", loop: asyncio.AbstractEventLoop) -> object:
    value: object = eval(code, space)  # noqa: S307  running code is its purpose
    if code.co_flags & 0x80:  # CO_COROUTINE: the code awaits
        return loop.run_until_complete(value)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    return value


if __name__ == "__main__":
    main()
