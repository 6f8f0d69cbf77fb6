"""Prints garbage, answers with far too much, goes deaf, and changes its tools."""

import os
import subprocess
import sys
import time

from support.servers.stage import Arguments, Context, Prop, Stage

COUNT = {"count": {"type": "integer"}}
_wire = os.dup(1)  # before the library diverts the standard output


async def garbage(arguments: Arguments, context: Context) -> object:
    for number in range(int(str(arguments["count"]))):
        os.write(_wire, f"Traceback? no, only noise {number} {{\n".encode())
    return "still here"


async def huge(arguments: Arguments, context: Context) -> object:
    return "x" * int(str(arguments["count"]))


async def freeze(arguments: Arguments, context: Context) -> object:
    time.sleep(3600)  # noqa: ASYNC251  deaf on purpose
    return "never"


async def leave_a_child(arguments: Arguments, context: Context) -> object:
    forever = [sys.executable, "-c", "import time; time.sleep(3600)"]
    child = subprocess.Popen(forever, start_new_session=True)  # noqa: ASYNC220  it is never waited for
    return {"child": child.pid}


def main() -> None:
    async def change(arguments: Arguments, context: Context) -> object:
        stage.props["added"] = Prop("added", garbage, COUNT, ("count",))
        await stage.announce(context)
        return "changed"

    stage = Stage(
        "awkward",
        [
            Prop("garbage", garbage, COUNT, ("count",), read_only=True),
            Prop("huge", huge, COUNT, ("count",)),
            Prop("freeze", freeze),
            Prop("leave_a_child", leave_a_child),
            Prop("change", change),
        ],
    )
    stage.run()


if __name__ == "__main__":
    main()
