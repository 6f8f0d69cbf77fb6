"""Answers what it is told, and tells what it sees of itself."""

import contextlib
import os
import sys

from support.servers.stage import Arguments, Context, Prop, Stage

TEXT = {"text": {"type": "string"}}


async def say(arguments: Arguments, context: Context) -> object:
    return {"said": arguments["text"]}


async def surroundings(arguments: Arguments, context: Context) -> object:
    sent = dict(context.meta or {}).get("annabelle")
    return {"environment": dict(os.environ), "pid": os.getpid(), "parent": os.getppid(), "sent": sent}


async def descriptors(arguments: Arguments, context: Context) -> object:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that was open for listing them
            found[name] = os.readlink(f"/proc/self/fd/{name}")
    return found


async def mutter(arguments: Arguments, context: Context) -> object:
    sys.stderr.write(f"muttered {arguments['text']}\n")
    sys.stderr.flush()
    return {}


async def fail(arguments: Arguments, context: Context) -> object:
    raise RuntimeError("as asked")


def main() -> None:
    Stage(
        "echo",
        [
            Prop("say", say, TEXT, ("text",), read_only=True),
            Prop("surroundings", surroundings, read_only=True),
            Prop("descriptors", descriptors, read_only=True),
            Prop("mutter", mutter, TEXT, ("text",), read_only=True),
            Prop("fail", fail),
        ],
    ).run()


if __name__ == "__main__":
    main()
