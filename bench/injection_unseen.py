"""Trains the guardian without a family of attacks, or without a kind of ordinary text, and measures on just that."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from measure import ROOT, Report

sys.path.insert(0, str(ROOT / "scripts"))  # the training stands there, beside what else makes parts of the package

from guardian_benign import injection_rows
from guardian_fit import Example, Rules, learn, read_example, text_score
from guardian_kinds import make_kinds
from train_guardian import SEED, Sources, for_channel, samples

_MADE = 10_000
_FAMILIES = {
    "injecagent": {"injecagent-base", "injecagent-enhanced"},
    "latent": {"garak-latentinjection"},
    "promptinject": {"garak-promptinject"},
    "xss": {"garak-xss-exec"},
    "jailbreak": {"jailbreak-dan", "jailbreak-inthewild"},
}
_KINDS = ("email-ham", "livemcp-tool-output", "skill-md", "injecagent-simulated-clean", "tau-tool-output")


def measure_unseen(report: Report, data: Path) -> None:
    """Detection of each family at 1 % of all ordinary tool output, and false alarms of each kind at the threshold that
    the others give."""
    kinds = make_kinds(SEED)
    chance = np.random.default_rng(SEED)
    given = {sample.text for sample in injection_rows(data)}
    examples = [read_example(sample, kinds, chance) for sample in samples(Sources(data, _MADE))]
    chosen = for_channel(examples, "output")
    dev = [one for one in examples if one.sample.text in given]
    for name, left_out in {**_FAMILIES, **{kind: {kind} for kind in _KINDS}}.items():
        fitted = learn([one for one in chosen if one.sample.family not in left_out], Rules())
        scored = [(one, text_score(one, fitted)) for one in dev]
        ordinary = [score for one, score in scored if _ordinary(one) and one.sample.family not in left_out]
        limit = float(np.quantile(ordinary, 0.99))
        mine = [score > limit for one, score in scored if one.sample.family in left_out]
        what = "unseen_detection" if name in _FAMILIES else "unseen_alarms"
        report.figures[f"{what}_{name}"] = sum(mine) / max(1, len(mine))


def _ordinary(one: Example) -> bool:
    return not one.sample.label and one.sample.channel == "output"
