"""Ordinary days, from `tasks.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from support.obedient.scenario import Task, steps_from

_FILE = Path(__file__).with_name("tasks.toml")


def ordinary(site: str, file: Path = _FILE) -> Iterator[Task]:
    for row in tomllib.loads(file.read_text().replace("{site}", site)).get("task", []):
        yield Task(id=f"task-{row['id']}", says=row["says"], steps=steps_from(row["calls"]))
