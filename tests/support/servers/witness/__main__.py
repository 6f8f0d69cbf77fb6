"""Writes a line to a file each time it acts, so that a test can count effects. It can die or hang on the way."""

import asyncio
import os
import signal

from support.servers.stage import Arguments, Context, Prop, Stage

WORDS = {"word": {"type": "string"}}
DIE = {**WORDS, "die": {"enum": ["before", "after", "never"]}, "marker": {"type": "string"}}


def note(word: object) -> None:
    descriptor = os.open(os.environ["WITNESS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{word}\n".encode())
    os.close(descriptor)


def die_once(marker: object) -> None:
    """Kill this process, but only for the first that finds the marker."""
    try:
        os.unlink(str(marker))
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


async def act(arguments: Arguments, context: Context) -> object:
    if arguments.get("die") == "before":
        die_once(arguments["marker"])
    note(arguments["word"])
    if arguments.get("die") == "after":
        die_once(arguments["marker"])
    return "done"


async def hang(arguments: Arguments, context: Context) -> object:
    note(f"{arguments['word']} began")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note(f"{arguments['word']} cancelled")
        raise
    return "never"


def main() -> None:
    Stage(
        "witness",
        [
            Prop("act", act, DIE, ("word",)),
            Prop("act_again", act, DIE, ("word",), idempotent=True),
            Prop("hang", hang, WORDS, ("word",)),
        ],
    ).run()


if __name__ == "__main__":
    main()
