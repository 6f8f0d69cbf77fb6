"""A cell is everything a run may see and use; a layer turns it into a command that really enforces that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CODE = "/code"
WORK = "/work"
SCRATCH = "/tmp"  # noqa: S108  inside a cell, where it is private and in memory
CELL_HOME = f"{SCRATCH}/home"
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that is visible inside, by default for reading only."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class CellLimits:
    """What all processes of a cell may use; `cpu_seconds` is None where the clock alone decides."""

    processes: int
    memory_bytes: int
    file_bytes: int
    cpu_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One program with its arguments, as seen from inside. What is not named here is not there."""

    name: str
    argv: tuple[str, ...]
    mounts: tuple[Mount, ...]
    folder: str
    env: Mapping[str, str]
    limits: CellLimits
    network: bool = False

    @property
    def writable(self) -> tuple[Mount, ...]:
        return tuple(mount for mount in self.mounts if mount.writable)


@dataclass(frozen=True, slots=True)
class Program:
    """An interpreter by its path inside, and what must be visible so that it runs."""

    argv: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()


class Layer(Protocol):
    """One way to keep code apart."""

    @property
    def name(self) -> str: ...

    @property
    def programs_of_host(self) -> bool:
        """Whether the programs of this machine run inside; otherwise those of an image."""
        ...

    def missing(self) -> str | None:
        """What is not there, without trying anything; None when it is worth a try."""
        ...

    def prepare(self, folder: Path, *, private: bool) -> None:
        """Make a folder that will be writable inside belong to whoever runs there; a private one is of no use to
        anybody else. Blocks; call it in a thread."""
        ...

    def place(self, mount: Mount) -> str:
        """Where a mount is seen from inside."""
        ...

    def call_filter(self, cell: Cell) -> bytes | None:
        """System calls to refuse, as a program for the kernel; None where the layer has no use for one."""
        ...

    def command(self, cell: Cell, call_filter: int | None = None) -> list[str]:
        """The command that runs the cell. The filter, if any, can be read from the given descriptor."""
        ...

    def environment(self, cell: Cell) -> dict[str, str]:
        """The environment the command is started with."""
        ...

    def interpreter(self, pid: int) -> int | None:
        """The process to interrupt, when `pid` is the command's; None when only the whole can be stopped."""
        ...

    def stop_command(self, cell: Cell) -> list[str] | None:
        """What ends the cell when killing the command does not."""
        ...
