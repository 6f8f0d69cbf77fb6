"""Starts one built-in server on its own: `python -m annabelle.toolbox.nursery.solo NAME MODULE PARCEL PARENT`.

Used where there is no nursery. The server behaves as a forked one does: exactly its environment, it dies with the hub,
and under its own warden it leaves nothing behind.
"""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from annabelle.toolbox.nursery import kernel
from annabelle.toolbox.nursery.child import flush_and_leave, run_server
from annabelle.toolbox.nursery.parcel import unwrap
from annabelle.toolbox.nursery.warden import guard


def main() -> None:
    name, module, descriptor, parent = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    kernel.die_with_parent(parent, signal.SIGTERM)
    environment = unwrap(descriptor).environment

    def become() -> NoReturn:
        kernel.show_name(name)
        flush_and_leave(run_server(module, environment))

    if sys.platform != "linux":
        become()
    sys.exit(guard(name, become))


if __name__ == "__main__":
    main()
