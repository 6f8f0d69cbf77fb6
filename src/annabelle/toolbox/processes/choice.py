"""Which way processes are started here: forked where the system can, else each from nothing."""

from __future__ import annotations

from pathlib import Path

from annabelle.toolbox.processes.forked import ForkedLauncher
from annabelle.toolbox.processes.launch import Launcher
from annabelle.toolbox.processes.plain import PlainLauncher
from annabelle.toolbox.processes.warm import WarmNursery, nursery_possible


def choose_launcher(
    fork: bool, preload: tuple[str, ...], python_path: tuple[str, ...], log: Path, warm: WarmNursery | None = None
) -> Launcher:
    """`warm` is a nursery that was started early, with these modules."""
    if fork and nursery_possible():
        return ForkedLauncher(preload, python_path, log, warm)
    return PlainLauncher(python_path)
