"""How another Python of ours is started: it must find the package, and gets nothing else of our environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import annabelle

_PACKAGE_PARENT = str(Path(annabelle.__file__).resolve().parent.parent)


def command(module: str, *arguments: str) -> list[str]:
    # -P keeps the working folder out of the import path: nothing lying there may be run.
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(python_path: Sequence[str]) -> dict[str, str]:
    # A nursery must not have a second thread when it forks, and numpy would start some.
    return {"PYTHONPATH": os.pathsep.join([_PACKAGE_PARENT, *python_path]), "OPENBLAS_NUM_THREADS": "1"}
