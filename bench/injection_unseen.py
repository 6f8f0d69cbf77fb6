"""Trains the guardian without a family of attacks and some kinds of ordinary text, and measures on just those."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from measure import ROOT, Report

sys.path.insert(0, str(ROOT / "scripts"))  # the training stands there, beside what else makes parts of the package

from guardian_benign import injection_rows
from guardian_fit import Example, Fit, Rules, learn, read_example, text_score
from guardian_kinds import make_kinds
from train_guardian import MADE, SEED, Sources, for_channel, growth, samples

from annabelle.servers.guardian.classifier import doublings

_FAMILIES = {
    "injecagent": {"injecagent-base", "injecagent-enhanced"},
    "latent": {"garak-latentinjection"},
    "promptinject": {"garak-promptinject"},
    "xss": {"garak-xss-exec"},
    "jailbreak": {"jailbreak-dan", "jailbreak-inthewild"},
}
_KINDS = (
    {"email-ham", "email-spam", "letters"},
    {"livemcp-tool-output", "json", "html", "javascript"},
    {"skill-md", "markdown", "package-readme", "node-packages", "rst", "pyenv"},
    {"injecagent-simulated-clean", "tau-tool-output", "conversation", "tool-descriptions", "changes"},
    {"python-code", "docstrings", "library-docstrings", "text", "manual", "manual-translated", "copyright", "shell"},
)
"""Kinds that resemble each other are left out together."""
_TURNS = (0, 2)
"""Each family is left out with these kinds after its own number, so that no pair of them decides."""


def measure_unseen(report: Report, data: Path) -> None:
    """Detection of each family where 1 % of ordinary tool output is flagged, both of them left out; and the alarms of
    each kind that was left out where 1 % of the others are flagged."""
    kinds = make_kinds(SEED)
    chance = np.random.default_rng(SEED)
    given = {sample.text for sample in injection_rows(data)}
    found = [one for one in samples(Sources(data, MADE)) if one.channel == "output" or one.label]
    chosen = for_channel([read_example(sample, kinds, chance) for sample in found], "output")
    rules = Rules()
    _measure_rows(report, chosen, given, rules)
    flags: defaultdict[str, list[float]] = defaultdict(list)
    for turn in _TURNS:
        _measure_turn(flags, chosen, given, rules, turn)
    report.figures |= {name: float(np.mean(shares)) for name, shares in flags.items()}


def _measure_turn(
    flags: defaultdict[str, list[float]], chosen: list[Example], given: set[str], rules: Rules, turn: int
) -> None:
    """Every family and every kind is left out once."""
    attacks: dict[str, list[float]] = {}
    ordinary: list[float] = []
    for number, (name, families) in enumerate(_FAMILIES.items()):
        kinds = _KINDS[(number + turn) % len(_KINDS)]
        fitted = learn([one for one in chosen if one.sample.family not in families | kinds], rules, rounds=1)
        scored = _scored([one for one in chosen if one.sample.text in given], chosen, fitted)
        attacks[name] = [score for one, score in scored if one.sample.family in families]
        unseen = [(one, score) for one, score in scored if one.sample.family in kinds]
        ordinary += [score for _, score in unseen]
        limit = _limit([score for one, score in scored if not one.sample.label and one.sample.family not in kinds])
        for kind in {one.sample.family for one, _ in unseen}:
            share = float(np.mean([score > limit for one, score in unseen if one.sample.family == kind]))
            flags[f"unseen_alarms_{kind}"].append(share)
    limit = _limit(ordinary)
    for name, scores in attacks.items():
        flags[f"unseen_detection_{name}"].append(float(np.mean([score > limit for score in scores])))


def _measure_rows(report: Report, chosen: list[Example], given: set[str], rules: Rules) -> None:
    """Detection and alarms on rows of tool output that were not learnt from, though others of their family were: every
    row is left out once."""
    rows = [one for one in chosen if one.sample.text in given and one.sample.channel == "output"]
    found: list[tuple[Example, bool]] = []
    for half in range(2):
        out = {one.sample.text for one in rows[half::2]}
        fitted = learn([one for one in chosen if one.sample.text not in out], rules, rounds=1)
        scored = _scored(rows[half::2], chosen, fitted)
        limit = _limit([score for one, score in scored if not one.sample.label])
        found += [(one, score > limit) for one, score in scored]
    attacks = [flag for one, flag in found if one.sample.label]
    report.figures["unseen_detection_rows"] = sum(attacks) / max(1, len(attacks))
    for kind in ("email-ham", "skill-md"):
        flags = [flag for one, flag in found if one.sample.family == kind]
        report.figures[f"unseen_alarms_rows_{kind}"] = sum(flags) / max(1, len(flags))


def _scored(rows: list[Example], chosen: list[Example], fitted: Fit) -> list[tuple[Example, float]]:
    """The rows with the sums the guardian would judge them by: long texts need more."""
    per_doubling = growth([one for one in chosen if not one.sample.label], fitted)
    return [(one, text_score(one, fitted) - per_doubling * doublings(len(one.windows))) for one in rows]


def _limit(ordinary: list[float]) -> float:
    return float(np.quantile(ordinary, 0.99))
