"""Starts one built-in server in a process of its own: `python -m annabelle.toolbox.nursery.solo MODULE PARCEL PARENT`.

Used where there is no nursery. The server behaves as a forked one does: exactly its environment, and it dies with the
hub.
"""

from __future__ import annotations

import signal
import sys

from annabelle.toolbox.nursery import kernel
from annabelle.toolbox.nursery.child import flush_and_leave, run_server
from annabelle.toolbox.nursery.parcel import unwrap


def main() -> None:
    module, descriptor, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kernel.die_with_parent(parent, signal.SIGKILL)
    flush_and_leave(run_server(module, unwrap(descriptor).environment))


if __name__ == "__main__":
    main()
