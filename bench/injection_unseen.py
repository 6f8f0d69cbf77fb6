"""Trains the guardian without a family of attacks, or without a kind of ordinary text, and measures on just that."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from measure import ROOT, Report

sys.path.insert(0, str(ROOT / "scripts"))  # the training stands there, beside what else makes parts of the package

from guardian_attacks import Sample
from guardian_benign import injection_rows
from guardian_fit import Example, Rules, learn, read_example, text_score
from guardian_kinds import make_kinds
from train_guardian import SEED, Sources, for_channel, samples

_MADE = 5_000
_MOST_OF_A_KIND = 80
_EPOCHS = 4
"""Fewer of everything than the shipped weights are trained with, so that a dozen trainings take minutes."""
_FAMILIES = {
    "injecagent": {"injecagent-base", "injecagent-enhanced"},
    "latent": {"garak-latentinjection"},
    "promptinject": {"garak-promptinject"},
    "xss": {"garak-xss-exec"},
    "jailbreak": {"jailbreak-dan", "jailbreak-inthewild"},
}
_KINDS = ("email-ham", "livemcp-tool-output", "skill-md", "injecagent-simulated-clean", "tau-tool-output")


def measure_unseen(report: Report, data: Path) -> None:
    """Detection of each family where 1 % of the ordinary tool output is flagged, and the alarms of each kind at the
    threshold that the other kinds give."""
    kinds = make_kinds(SEED)
    chance = np.random.default_rng(SEED)
    given = {sample.text for sample in injection_rows(data)}
    found = _some([one for one in samples(Sources(data, _MADE)) if one.channel == "output" or one.label], given)
    examples = [read_example(sample, kinds, chance) for sample in found]
    chosen = for_channel(examples, "output")
    dev = [one for one in examples if one.sample.text in given]
    rules = replace(Rules(), epochs=_EPOCHS)
    _measure_rows(report, chosen, given, rules)
    for name, left_out in {**_FAMILIES, **{kind: {kind} for kind in _KINDS}}.items():
        fitted = learn([one for one in chosen if one.sample.family not in left_out], rules, rounds=1)
        scored = [(one, text_score(one, fitted)) for one in dev]
        ordinary = [score for one, score in scored if _ordinary(one) and one.sample.family not in left_out]
        limit = float(np.quantile(ordinary, 0.99))
        mine = [score > limit for one, score in scored if one.sample.family in left_out]
        what = "unseen_detection" if name in _FAMILIES else "unseen_alarms"
        report.figures[f"{what}_{name}"] = sum(mine) / max(1, len(mine))


def _measure_rows(report: Report, chosen: list[Example], given: set[str], rules: Rules) -> None:
    """Detection and alarms on rows of tool output that were not learnt from, though others of their family were: every
    row is left out once."""
    rows = [one for one in chosen if one.sample.text in given and one.sample.channel == "output"]
    found: list[tuple[Example, bool]] = []
    for half in range(2):
        out = {one.sample.text for one in rows[half::2]}
        fitted = learn([one for one in chosen if one.sample.text not in out], rules, rounds=1)
        scored = [(one, text_score(one, fitted)) for one in rows[half::2]]
        limit = float(np.quantile([score for one, score in scored if not one.sample.label], 0.99))
        found += [(one, score > limit) for one, score in scored]
    attacks = [flag for one, flag in found if one.sample.label]
    report.figures["unseen_detection_rows"] = sum(attacks) / max(1, len(attacks))
    for kind in ("email-ham", "skill-md"):
        flags = [flag for one, flag in found if one.sample.family == kind]
        report.figures[f"unseen_alarms_rows_{kind}"] = sum(flags) / max(1, len(flags))


def _ordinary(one: Example) -> bool:
    return not one.sample.label and one.sample.channel == "output"


def _some(found: list[Sample], given: set[str]) -> list[Sample]:
    """All given rows and everything made up; of other ordinary text a bounded number of each kind."""
    counted: Counter[str] = Counter()
    kept: list[Sample] = []
    for one in found:
        bounded = not one.label and one.text not in given and not one.family.startswith("made-")
        counted[one.family] += bounded
        if not bounded or counted[one.family] <= _MOST_OF_A_KIND:
            kept.append(one)
    return kept
