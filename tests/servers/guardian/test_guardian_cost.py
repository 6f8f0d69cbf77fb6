"""Nobody can keep the guardian busy: hostile text costs about what ordinary text of its length does."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from annabelle.servers.guardian.judges import EmbeddedScanner

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench"))
hostile = importlib.import_module("injection_hostile")
pytestmark = pytest.mark.req("GRD-09")


@pytest.fixture(scope="module")
def scanner() -> EmbeddedScanner:
    return EmbeddedScanner()


@pytest.mark.parametrize("family", hostile.hostile_texts(40))
def test_hostile_text_costs_no_more_than_half_as_much_again_as_ordinary_text(
    scanner: EmbeddedScanner, family: str
) -> None:
    text, ordinary = hostile.hostile_texts()[family], hostile.repeated(hostile.ORDINARY)
    # Measured once more where another process got in between.
    ratios = (hostile.cost_beside(scanner, text, ordinary, runs) for runs in (2, 6, 12))
    assert any(ratio <= hostile.MOST for ratio in ratios)


def test_a_megabyte_costs_no_more_than_the_part_of_it_that_is_looked_at(scanner: EmbeddedScanner) -> None:
    long, short = hostile.repeated(hostile.ORDINARY, 1_000_000), hostile.repeated(hostile.ORDINARY)
    assert hostile.cost_beside(scanner, long, short) <= 8
