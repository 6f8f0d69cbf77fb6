"""Counts the processes an agent has had, so that a new process's attempts supersede those of the dead one."""

from __future__ import annotations

from pathlib import Path

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically

TRIES_PER_GENERATION = 100


def next_generation(folder: Path) -> int:
    """The number of this process: one more than the last one of the same agent."""
    file = folder / "generation"
    try:
        number = int(file.read_text(encoding="ascii")) + 1
    except (FileNotFoundError, ValueError):
        number = 1
    try:
        write_atomically(file, str(number))
    except OSError as error:
        raise StorageTrouble(
            f"{file} could not be written: {error.strerror}.", hint="Free some disk space or fix its permissions."
        ) from error
    return number


def attempt_number(generation: int, local_try: int) -> int:
    """Grows with every new try of a step, also over restarts of the process."""
    return generation * TRIES_PER_GENERATION + min(local_try, TRIES_PER_GENERATION - 1)
