"""A text in the person's own editor."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from annabelle.core.errors import CallerMistake

_USUAL = ("nano", "vi")


def edited(text: str, suffix: str = ".txt") -> str:
    """The text as it was when the editor was left. The file is the person's alone, and gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"annabelle{suffix}"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        _edit(file)
        return file.read_text(encoding="utf-8", errors="replace")


def _edit(file: Path) -> None:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    for command in [chosen] if chosen else _USUAL:
        with contextlib.suppress(FileNotFoundError):
            if _left_well(command, file):
                return
            raise CallerMistake("The editor ended with an error. Nothing was changed.")
    raise CallerMistake("No editor was found.", hint="Name yours in EDITOR, as in: EDITOR=nano annabelle memory …")


def _left_well(command: str, file: Path) -> bool:
    try:
        return subprocess.run([*shlex.split(command), str(file)], check=False).returncode == 0
    except (PermissionError, ValueError) as error:
        raise CallerMistake(f"{command!r} can not be run. Nothing was changed.", hint="Put EDITOR right.") from error
