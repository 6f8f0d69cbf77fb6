"""An external server, run as a command, that starts a process which starts another, both in sessions of their own.

`python -m support.servers.grandparent PIDS_FILE` writes the pids of both into the file. It answers as `who` does.
"""

import subprocess
import sys

from support.servers import who

_GRANDCHILD = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(3600)"
_CHILD = (
    "import os, subprocess, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n');"
    f"subprocess.Popen([sys.executable, '-c', {_GRANDCHILD!r}, sys.argv[1]], start_new_session=True);"
    "time.sleep(3600)"
)


def main() -> None:
    subprocess.Popen([sys.executable, "-c", _CHILD, sys.argv[1]], start_new_session=True)
    who.main()


if __name__ == "__main__":
    main()
