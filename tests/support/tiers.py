"""Which tests `make quick` leaves out: those that start a process, a browser or a database server, and slow files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parent.parent
SLOW_FOLDERS = frozenset({"crash", "durable", "e2e", "project"})
# Fixtures that start a process, or give a test the means to.
SLOW_FIXTURES = frozenset(
    {
        "as_process", "both_ways", "codexec", "imap_box", "known", "mail_servers", "make_hub",
        "make_server", "make_web", "postgres", "postgres_tables_url", "postgres_url", "radicale", "running", "shared",
        "shared_hub", "spare", "terminal", "visit", "web", "with_servers", "worker",
    }
)  # fmt: skip
# A module that has one of these in its namespace starts processes itself.
SLOW_NAMES = frozenset({"HubProcess", "Toolbox", "multiprocessing", "run_toolbox", "subprocess"})


QUICK_PROFILE = "quick"
QUICK_EXAMPLES = 20


def is_slow(item: pytest.Item) -> bool:
    if _folder(item.path) in SLOW_FOLDERS or _is_slow_file(item.path) or item.get_closest_marker("timeout"):
        return True
    if not isinstance(item, pytest.Function):
        return False
    if SLOW_FIXTURES.intersection(item.fixturenames) or SLOW_NAMES.intersection(vars(item.module)):
        return True
    return "postgresql" in (item.callspec.params.values() if hasattr(item, "callspec") else ())


def try_fewer_examples(item: pytest.Item) -> None:
    """A profile does not reach a test that says itself how many examples it wants, and hypothesis has no other way."""
    wanted: settings | None = getattr(getattr(item, "function", None), "_hypothesis_internal_use_settings", None)
    if isinstance(item, pytest.Function) and wanted is not None and wanted.max_examples > QUICK_EXAMPLES:
        fewer = settings(wanted, max_examples=QUICK_EXAMPLES)
        item.function._hypothesis_internal_use_settings = fewer


@cache
def _folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


@cache
def _slow_files() -> frozenset[str]:
    lines = (TESTS / "slow_files.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


@cache
def _is_slow_file(path: Path) -> bool:
    return path.relative_to(TESTS).as_posix() in _slow_files()
