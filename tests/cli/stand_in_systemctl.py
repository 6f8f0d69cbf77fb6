"""A `systemctl` for tests: notes what it is asked, and runs the unit as its text says.

STAND_IN_STATE is its folder; a file `offline` in it makes it as deaf as it is in a container.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

STATE = Path(os.environ["STAND_IN_STATE"])
PATIENCE = 30.0


def main(words: list[str]) -> int:
    with (STATE / "asked").open("a") as asked:
        asked.write(json.dumps(words) + "\n")
    if "is-system-running" in words:
        offline = (STATE / "offline").exists()
        sys.stdout.write("offline\n" if offline else "degraded\n")
        return 1
    if (STATE / "refuses").exists() and words[1] in (STATE / "refuses").read_text():
        sys.stderr.write("Failed to do that: Access denied\n")
        return 1
    if "is-active" in words:
        sys.stdout.write("active\n" if _alive() else "failed\n")
    elif "restart" in words:
        _stop()
        _start(Path(os.environ["XDG_CONFIG_HOME"], "systemd", "user", words[-1]))
    elif "disable" in words:
        _stop()
    return 0


def _start(unit: Path) -> None:
    text = unit.read_text()
    command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert command is not None
    environment = dict(shlex.split(line)[0].split("=", 1) for line in re.findall(r"^Environment=(.*)$", text, re.M))
    if "PYTHONPATH" in os.environ:  # what keeps the tests off the network
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    words = (STATE / "said").open("ab")
    process = subprocess.Popen(
        shlex.split(command[1]), env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words,
        start_new_session=True,
    )  # fmt: skip
    (STATE / "pid").write_text(str(process.pid))


def _alive() -> bool:
    try:
        stat = Path("/proc", (STATE / "pid").read_text(), "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _stop() -> None:
    if _alive():
        os.kill(int((STATE / "pid").read_text()), signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while _alive() and time.monotonic() < deadline:
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
