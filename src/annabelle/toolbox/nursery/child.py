"""The life of a built-in server from the fork to its end: it becomes itself, runs, and never returns."""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import sys
import time
import traceback
from typing import NoReturn

from annabelle.toolbox.nursery import kernel
from annabelle.toolbox.nursery.parcel import unwrap


def become_server(module: str, name: str, descriptors: tuple[int, int, int, int], parent: int) -> NoReturn:
    """Runs in the forked child. `descriptors` are its input, output, log and parcel."""
    code = 1
    try:
        kernel.die_with_parent(parent, signal.SIGKILL)
        kernel.reset_signals()
        environment = unwrap(descriptors[3]).environment
        for standard, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, standard)
        kernel.close_all_but_standard()
        kernel.show_name(name)
        code = run_server(module, environment)
    except BaseException:  # noqa: BLE001  the end of a process: whatever it was goes to the server's log
        traceback.print_exc()
    finally:
        flush_and_leave(code)


def run_server(module: str, environment: dict[str, str]) -> int:
    """Take on exactly this environment and run the server's main; its exit code."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    random.seed()
    gc.enable()
    sys.argv = [module]
    try:
        importlib.import_module(module).main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return 130
    except BaseException:  # noqa: BLE001  the end of a process: whatever it was goes to the server's log
        traceback.print_exc()
        return 1
    return 0


def flush_and_leave(code: int) -> NoReturn:
    """Skip the interpreter's own ending: what the nursery registered for its exit is not this process's to run."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # nobody reads it any more
    os._exit(code)
