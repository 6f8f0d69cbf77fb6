"""How many errors and warnings the logs usually get in an hour, and whether there are more now (DIA-02)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from annabelle.core.home import write_atomically
from annabelle.core.models import FrozenModel

WINDOW: Final = timedelta(hours=168)
HOUR: Final = timedelta(hours=1)
LEAST_SAMPLES: Final = 6
FACTOR: Final = 3
LEAST_ERRORS, LEAST_WARNINGS = 3, 5
_TAIL_BYTES: Final = 2_000_000
_LINE: Final = re.compile(rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (WARNING|ERROR|CRITICAL)\b", re.MULTILINE)


class ErrorSample(FrozenModel):
    """What the logs got in the hour before `at`."""

    at: datetime
    errors: int = Field(ge=0)
    warnings: int = Field(ge=0)


class _BaselineFile(BaseModel):
    samples: list[ErrorSample] = Field(default_factory=list[ErrorSample])


@dataclass(frozen=True, slots=True)
class ErrorBaseline:
    path: Path

    def load(self) -> list[ErrorSample]:
        """The samples, oldest first; ValueError if the file is damaged."""
        try:
            return _BaselineFile.model_validate_json(self.path.read_bytes()).samples
        except FileNotFoundError:
            return []
        except ValidationError as error:
            raise ValueError(f"{self.path.name} is damaged.") from error

    def add(self, sample: ErrorSample) -> bool:
        """Keep a sample, one for each hour. A damaged file is put aside and begun again; returns whether it was."""
        damaged = False
        try:
            known = self.load()
        except ValueError:
            self.path.replace(self.path.with_name(f"{self.path.name}.bad"))
            known, damaged = [], True
        if known and timedelta() <= sample.at - known[-1].at < HOUR:
            return damaged
        recent = [one for one in known if sample.at - WINDOW <= one.at < sample.at]
        write_atomically(self.path, _BaselineFile(samples=[*recent, sample]).model_dump_json() + "\n")
        return damaged


def count_errors(logs: Path, at: datetime) -> ErrorSample:
    """Errors and warnings that the logs of all components got in the hour before."""
    counts = {"ERROR": 0, "WARNING": 0}
    for path in sorted([*logs.glob("*.log"), *logs.glob("*.log.1")]):
        for moment, level in _LINE.findall(_read_tail(path)):
            written = datetime.fromisoformat(moment.decode()).astimezone()
            if at - HOUR < written <= at:
                counts["WARNING" if level == b"WARNING" else "ERROR"] += 1
    return ErrorSample(at=at, errors=counts["ERROR"], warnings=counts["WARNING"])


def exceeds_baseline(sample: ErrorSample, known: list[ErrorSample]) -> bool:
    """Whether this hour has three times what is usual, and enough of it to matter."""
    window = [one for one in known if sample.at - WINDOW <= one.at <= sample.at - HOUR]
    if len(window) < LEAST_SAMPLES:
        return False
    errors = sum(one.errors for one in window) / len(window)
    warnings = sum(one.warnings for one in window) / len(window)
    return (sample.errors >= LEAST_ERRORS and sample.errors >= FACTOR * errors) or (
        sample.warnings >= LEAST_WARNINGS and sample.warnings >= FACTOR * warnings
    )


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return file.read()
