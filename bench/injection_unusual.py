"""Measures on texts that resemble nothing in the training data, and on ordinary ones that ask for things."""

from __future__ import annotations

import tomllib
from pathlib import Path

from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.document import read_document
from annabelle.servers.guardian.judges import EmbeddedScanner
from measure import Report

SETS = ("unusual", "ordinary")


def measure_unusual(report: Report, scanner: EmbeddedScanner, config: GuardianConfig) -> None:
    """The shares that are blocked, and blocked or labelled, at the defaults."""
    for kind_of_set in SETS:
        file = Path(__file__).with_name(f"injection_{kind_of_set}.toml")
        for name, kinds in tomllib.loads(file.read_text(encoding="utf-8")).items():
            texts = [text for texts in kinds.values() for text in texts]
            scores = [scanner.assess(read_document(text), "tool output").score for text in texts]
            for what, limit in (("blocked", config.block_score), ("marked", config.label_score)):
                report.figures[f"{kind_of_set}_{name}_{what}"] = sum(score >= limit for score in scores) / len(scores)
