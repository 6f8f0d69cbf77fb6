"""Writes a line to a file each time it acts, so that a test can count effects. It can die or hang on the way."""

import asyncio

from support.servers.stage import Arguments, Context, Prop, Stage
from support.servers.witness import die_once, note

WORDS = {"word": {"type": "string"}}
DIE = {**WORDS, "die": {"enum": ["before", "after", "never"]}, "marker": {"type": "string"}}


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
