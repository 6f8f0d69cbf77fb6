"""Answers what it is told, and tells what it sees of itself."""

import os

from support.servers.stage import Arguments, Context, Prop, Stage

TEXT = {"text": {"type": "string"}}


async def say(arguments: Arguments, context: Context) -> object:
    return {"said": arguments["text"]}


async def surroundings(arguments: Arguments, context: Context) -> object:
    sent = dict(context.meta or {}).get("annabelle")
    return {"environment": dict(os.environ), "pid": os.getpid(), "parent": os.getppid(), "sent": sent}


async def descriptors(arguments: Arguments, context: Context) -> object:
    return {
        "open": {
            name: os.readlink(f"/proc/self/fd/{name}")
            for name in os.listdir("/proc/self/fd")
            if name.isdigit() and os.path.lexists(f"/proc/self/fd/{name}")
        }
    }


async def fail(arguments: Arguments, context: Context) -> object:
    raise RuntimeError("as asked")


def main() -> None:
    Stage(
        "echo",
        [
            Prop("say", say, TEXT, ("text",), read_only=True),
            Prop("surroundings", surroundings, read_only=True),
            Prop("descriptors", descriptors, read_only=True),
            Prop("fail", fail),
        ],
    ).run()


if __name__ == "__main__":
    main()
