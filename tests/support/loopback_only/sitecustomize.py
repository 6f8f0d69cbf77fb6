"""Loaded by every Python process that inherits the path `scripts/isolated.py` sets: the guard, before anything else."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parent.parent / "network.py"))["guard"]()
