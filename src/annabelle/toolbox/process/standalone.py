"""Starts one built-in server without a fork server: `python -m annabelle.toolbox.process.standalone NAME MODULE CONFIG
PARENT`.
"""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from annabelle.toolbox.process import kernel
from annabelle.toolbox.process.child import flush_and_exit, run_server, run_under_reaper
from annabelle.toolbox.process.child_config import read_config


def main() -> None:
    name, module, descriptor, parent = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    kernel.die_with_parent(parent, signal.SIGTERM)
    environment = read_config(descriptor).environment

    def become() -> NoReturn:
        kernel.set_process_name(name)
        flush_and_exit(run_server(module, environment))

    if sys.platform != "linux":
        become()
    sys.exit(run_under_reaper(name, become))


if __name__ == "__main__":
    main()
