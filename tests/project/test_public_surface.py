"""Nothing that people, clients and stored data rely on vanishes or changes; what is new may come.

`public_surface.json` is the list to hold on to. After an addition: scripts/public_surface.py --write.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).with_name("public_surface.json")
PARTS: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
WRITE = "if it is meant: .venv/bin/python scripts/public_surface.py --write"


@pytest.fixture(scope="module")
def public_surface() -> Iterator[ModuleType]:
    scripts = Path(__file__).resolve().parent.parent.parent / "scripts"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(scripts)
        yield importlib.import_module("public_surface")


def test_the_list_has_every_part(public_surface: ModuleType):
    assert set(PARTS) == set(public_surface.PARTS)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_nothing_that_others_rely_on_has_changed(public_surface: ModuleType, part: str):
    now = json.loads(json.dumps(public_surface.PARTS[part]()))
    assert list(broken(PARTS[part], now, part)) == [], WRITE


def test_a_lost_a_changed_and_a_newly_required_field_break_and_an_optional_one_does_not():
    before = {"a": "string", "b": "required string", "errors": ["401"]}
    after = {"a": "integer", "c": "required string", "d": "string = 1", "errors": ["401", "404"]}
    assert list(broken(before, after, "x")) == [
        'x › a was "string" and is "integer"',
        "x › b is gone",
        "x › c is new and required",
    ]


def broken(before: object, now: object, place: str) -> Iterator[str]:
    """What whoever relied on `before` would miss. Something new may come, unless it is required of them."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name, value in before.items():
            inner = f"{place} › {name}"
            if name in now:
                yield from broken(value, now[name], inner)
            else:
                yield f"{inner} is gone"
        if before and "responses" not in place and "answers" not in place:
            yield from (
                f"{place} › {name} is new and required"
                for name, value in now.items()
                if name not in before and str(value).startswith("required ")
            )
    elif isinstance(before, list) and isinstance(now, list):
        yield from (f"{place} › {value} is gone" for value in before if value not in now)
    elif before != now:
        yield f"{place} was {json.dumps(before)} and is {json.dumps(now)}"
