"""An external server, run as a command, that starts a process which starts another, both in sessions of their own.

`python -m support.servers.grandparent PIDS_FILE` writes the pids of both into the file.
"""

import asyncio
import os
import subprocess
import sys

from support.servers.stage import Arguments, Context, Prop, Stage

_GRANDCHILD = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(3600)"
_CHILD = (
    "import os, subprocess, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n');"
    f"subprocess.Popen([sys.executable, '-c', {_GRANDCHILD!r}, sys.argv[1]], start_new_session=True);"
    "time.sleep(3600)"
)


async def who(arguments: Arguments, context: Context) -> object:
    return {"environment": dict(os.environ), "arguments": sys.argv[1:], "folder": os.getcwd(), "pid": os.getpid()}


def main() -> None:
    if len(sys.argv) > 1:
        subprocess.Popen([sys.executable, "-c", _CHILD, sys.argv[1]], start_new_session=True)
    asyncio.run(Stage("grandparent", [Prop("who", who, read_only=True)]).serve())


if __name__ == "__main__":
    main()
