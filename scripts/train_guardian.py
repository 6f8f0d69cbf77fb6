"""Trains the guardian's classifier and writes its weights into the package.

    .venv/bin/python scripts/train_guardian.py [--data ../shared/data] [--out FILE] [--made 11500] [--only message]

The data folder holds injection-dev.jsonl.gz and, if they are there, other sets of ordinary text. Further ordinary text
is read from this machine and made from the phrases of the tools, further attacks are made up here; none of it is kept.
Same machine and data, same weights.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from guardian_attacks import Attacks, Channel, Sample
from guardian_benign import from_data, from_machine, from_ordinary, from_phrases, injection_rows, user_requests
from guardian_fit import CUE, Example, Fit, Rules, Table, learn, read_example, text_score
from guardian_kinds import make_kinds
from numpy.typing import NDArray

import annabelle.servers.guardian as package
from annabelle.servers.guardian.classifier import (
    WEIGHTS_FILE,
    ClassifierHead,
    ClassifierModel,
    doublings,
    load_model,
    save_model,
)

SEED = 7
MADE = 11_500
MOST_OF_A_KIND = 600
_FOLDS = 3
_NOT_CARRIERS = ("javascript", "settings-files", "json")
_AT_BLOCK, _AT_LABEL = 0.9, 0.5
_QUANTILES: dict[Channel, tuple[float, float]] = {"output": (0.996, 0.975), "message": (0.999, 0.998)}
"""Shares of ordinary texts, of kinds that were not learnt from, that stay below the scores of blocking and "
"labelling."""


@dataclass(frozen=True)
class Sources:
    """Where texts come from."""

    data: Path
    made: int
    more: bool = True
    """Whether ordinary text is taken from the machine, the texts and the phrases, too."""


def samples(sources: Sources) -> list[Sample]:
    """Everything to learn from: given rows, ordinary text, made-up attacks and their harmless counterparts."""
    given, other = injection_rows(sources.data), from_data(sources.data)
    machine = [*from_ordinary(SEED), *from_machine(SEED)] if sources.more else []
    ordinary = [one for one in given + other + machine if not one.label and one.channel == "output"]
    carriers = [one.text for one in ordinary if one.family not in _NOT_CARRIERS]
    attacks = Attacks(SEED, carriers, user_requests(sources.data))
    harmless = attacks.harmless(sources.made // 5) + attacks.letters(sources.made // 25)
    harmless += attacks.rightful(sources.made // 10)
    asked = _some(from_phrases(SEED)) if sources.more else []
    return given + _some(other) + machine + attacks.made(sources.made) + harmless + asked


def for_channel(examples: list[Example], channel: Channel) -> list[Example]:
    """What one channel is learnt from. An attack that a user would say is one in content too; an order in content may
    be a user's right, so it teaches nothing about messages. Whatever people paste into a message is ordinary there."""
    if channel == "output":
        return [one for one in examples if one.sample.channel == "output" or one.sample.label]
    return [one for one in examples if one.sample.channel == "message" or not one.sample.label]


def unseen_scores(examples: list[Example], rules: Rules) -> list[tuple[Example, float]]:
    """Ordinary texts, each scored by weights that were learnt without its kind. What was made up here is always learnt
    from: without the harmless counterparts the very shape of the attacks would look suspicious."""
    kinds = {one.sample.family for one in examples if not one.sample.label}
    families = sorted(kind for kind in kinds if not kind.startswith("made-"))
    scored: list[tuple[Example, float]] = []
    rules = replace(rules, epochs=rules.epochs // 2 + 1)
    for fold in range(_FOLDS):
        out = set(families[fold::_FOLDS])
        fitted = learn([one for one in examples if one.sample.label or one.sample.family not in out], rules, rounds=1)
        scored += [
            (one, text_score(one, fitted)) for one in examples if not one.sample.label and one.sample.family in out
        ]
    return scored


def calibrated(fitted: Fit, scored: list[tuple[Example, float]], channel: Channel) -> ClassifierHead:
    """How sums become scores: each kind of ordinary text counts the same, so the rare ones are not sacrificed."""
    per_doubling = growth([one for one, _ in scored], fitted)
    corrected = np.array([score - per_doubling * doublings(len(one.windows)) for one, score in scored])
    sizes: dict[str, int] = defaultdict(int)
    for one, _ in scored:
        sizes[one.sample.family] += 1
    weights = np.array([1 / np.sqrt(sizes[one.sample.family]) for one, _ in scored])
    block, label = (_quantile(corrected, weights, share) for share in _QUANTILES[channel])
    slope = float(np.log(_AT_BLOCK / (1 - _AT_BLOCK)) / max(0.3, block - label))
    return ClassifierHead(fitted.weights, fitted.dense * CUE, fitted.bias, slope, label, per_doubling)


def growth(examples: list[Example], fitted: Fit) -> float:
    """By how much the highest sum of ordinary text grows when there is twice as much of it."""
    chance = np.random.default_rng(SEED)
    tops: dict[int, list[float]] = defaultdict(list)
    for one in examples:
        if len(one.windows) >= 16:
            sums = Table(one.windows).scores(fitted.weights, fitted.dense, fitted.bias)
            for count in (2, 4, 8, 16):
                tops[count] += [float(chance.choice(sums, count, replace=False).max()) for _ in range(4)]
    if not tops:
        return 0.2
    marks = [float(np.quantile(tops[count], 0.97)) for count in (2, 4, 8, 16)]
    return float(np.clip(np.mean(np.diff(marks)), 0.0, 0.6))


def _quantile(values: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(below, share)])


def _some(found: list[Sample]) -> list[Sample]:
    """No more than a bounded number of each kind, spread over all of it."""
    kinds: dict[str, list[Sample]] = defaultdict(list)
    for one in found:
        kinds[one.family].append(one)
    return [one for group in kinds.values() for one in group[:: max(1, len(group) // MOST_OF_A_KIND)]]


def train(
    sources: Sources, rules: Rules, kinds: NDArray[np.uint16], say: bool = True, only: Channel | None = None
) -> ClassifierModel:
    """The whole model; with `only`, the head of the other channel stays as it is. `kinds` tells which words are of a
    kind."""
    chance = np.random.default_rng(SEED)
    examples = [read_example(one, kinds, chance) for one in samples(sources)]
    heads: dict[Channel, ClassifierHead] = {}
    channels: tuple[Channel, ...] = ("output", "message")
    if only is not None:
        shipped, channels = load_model(), (only,)
        heads = {"output": shipped.output, "message": shipped.message}
    for channel in channels:
        chosen = for_channel(examples, channel)
        heads[channel] = calibrated(learn(chosen, rules), unseen_scores(chosen, rules), channel)
        if say:
            head = heads[channel]
            print(  # noqa: T201  what a person who trains wants to see
                f"{channel}: {len(chosen)} texts, {head.slope:.2f} × (sum - {head.middle:.2f}), "
                f"{head.per_doubling:.2f} a doubling"
            )
    return ClassifierModel(kinds, heads["output"], heads["message"])


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with the data")
    reader.add_argument(
        "--out", type=Path, default=Path(str(package.__file__)).parent / WEIGHTS_FILE, help="file to write"
    )
    reader.add_argument("--made", type=int, default=MADE, help="attacks to make up")
    reader.add_argument(
        "--only", choices=("output", "message"), help="train this channel, and leave the other as it is"
    )
    given = reader.parse_args()
    if not (given.data / "injection-dev.jsonl.gz").exists():
        sys.exit(f"{given.data} holds no injection-dev.jsonl.gz.")
    model = train(Sources(given.data, given.made), Rules(), make_kinds(SEED), only=given.only)
    save_model(str(given.out), model)


if __name__ == "__main__":
    main()
