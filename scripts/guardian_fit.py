"""Turns samples into windows of numbers and finds the weights that tell attacks from ordinary content."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from guardian_attacks import Sample
from numpy.typing import NDArray

from annabelle.servers.guardian.attack_cues import CUES, find_cues
from annabelle.servers.guardian.classifier import SIZE, Features, read_features
from annabelle.servers.guardian.document import read_document, split_into_windows
from annabelle.servers.guardian.visible_text import normalise_characters

DENSE = len(CUES) + 2
MOST_WINDOWS = 20
CUE = 2.5
"""How much a cue counts beside single features: phrases that people thought of carry over better to what is new."""
_OVERLAP = 0.6
_SPREAD = 5
_WORST = 5
Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Window:
    """One window as numbers: its buckets, its cues, and whether the attack stands in it (None: somewhere in its "
    "text)."""

    buckets: NDArray[np.int32]
    dense: Vector
    attacked: bool | None


@dataclass(frozen=True)
class Example:
    """A sample with all its windows."""

    sample: Sample
    windows: list[Window]


def read_example(sample: Sample, kinds: NDArray[np.uint16], chance: np.random.Generator) -> Example:
    """The windows of a sample, as the guardian would cut them; of very many, some."""
    document = read_document(sample.text)
    parts = [("", document.text), *((aside.kind, aside.text) for aside in document.asides)]
    attack = normalise_characters(sample.attack)[:2000] if sample.attack else None
    windows: list[Window] = []
    for kind, text in parts:
        features = read_features(text, kinds)
        spans = split_into_windows(0, len(text))
        if len(spans) > MOST_WINDOWS:
            spans = [spans[place] for place in sorted(chance.choice(len(spans), MOST_WINDOWS, replace=False))]
        for start, end in spans:
            if end > start:
                windows.append(
                    _window(text, features, (start, end), kind, _attacked(sample, kind, text, attack, start, end))
                )
    if sample.label and attack and not any(window.attacked for window in windows):
        windows = [Window(one.buckets, one.dense, None) for one in windows]
    return Example(sample, windows)


def _window(text: str, features: Features, span: tuple[int, int], kind: str, attacked: bool | None) -> Window:
    start, end = span
    first, last = np.searchsorted(features.starts, [start, end])
    at_pieces, at_words = np.arange(start, end), features.starts[first:last]
    slices = [
        buckets[features.fresh[at[: len(buckets)]]]
        for at, buckets in (
            *((at_pieces, pieces[start:end]) for pieces in features.pieces),
            *((at_words, words[first:last]) for words in features.words),
        )
    ]
    dense = np.zeros(DENSE, dtype=np.float32)
    for cue in find_cues(text[start:end]):
        dense[cue.family] = CUE
    dense[len(CUES)] = CUE * (kind == "hidden")
    dense[len(CUES) + 1] = CUE * (kind == "decoded")
    return Window(np.concatenate(slices).astype(np.int32), dense, attacked)


def _attacked(sample: Sample, kind: str, text: str, attack: str | None, start: int, end: int) -> bool | None:
    if not sample.label:
        return False
    if attack is None:
        return None
    place = text.find(attack[:60])
    if place < 0:
        return kind == "decoded"
    overlap = min(end, place + len(attack)) - max(start, place)
    return overlap >= _OVERLAP * min(len(attack), end - start)


class Table:
    """Windows in one long row of numbers, to sum over quickly."""

    def __init__(self, windows: list[Window]) -> None:
        self.lengths = np.array([len(window.buckets) for window in windows], dtype=np.int64)
        self.buckets = np.concatenate([window.buckets for window in windows]) if windows else np.zeros(0, np.int32)
        self.dense = np.stack([window.dense for window in windows])
        self.scale = (1 / np.sqrt(self.lengths + 1.0)).astype(np.float32)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.lengths)])

    def scores(self, weights: Vector, dense: Vector, bias: float) -> Vector:
        sums = np.concatenate([[0.0], np.cumsum(weights[self.buckets], dtype=np.float64)])
        linear = (sums[self.ends[1:]] - sums[self.ends[:-1]]).astype(np.float32) * self.scale
        return linear + self.dense @ dense + np.float32(bias)


@dataclass(frozen=True)
class Fit:
    """The weights of one channel."""

    weights: Vector
    dense: Vector
    bias: float


@dataclass(frozen=True)
class Rules:
    """How the weights are looked for."""

    epochs: int = 8
    batch: int = 512
    rate: float = 0.03
    decay: float = 3e-5
    dense_decay: float = 1e-3
    seed: int = 7


def fit(windows: list[Window], labels: Vector, importance: Vector, rules: Rules) -> Fit:
    """Logistic regression by small steps; the same input gives the same weights."""
    table = Table(windows)
    chance = np.random.default_rng(rules.seed)
    weights, dense, bias = np.zeros(SIZE, np.float32), np.zeros(DENSE, np.float32), 0.0
    first, second = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)
    dense_second, bias_second = np.zeros(DENSE, np.float32), 0.0
    ends, step = table.ends, 0
    for epoch in range(rules.epochs):
        order = chance.permutation(len(windows))
        rate = rules.rate * (1 - epoch / rules.epochs)
        for begin in range(0, len(order), rules.batch):
            rows = order[begin : begin + rules.batch]
            picked = np.concatenate([np.arange(ends[row], ends[row + 1]) for row in rows])
            buckets = table.buckets[picked]
            owner = np.repeat(np.arange(len(rows)), table.lengths[rows])
            scale = table.scale[rows]
            linear = np.bincount(owner, weights=weights[buckets], minlength=len(rows)).astype(np.float32) * scale
            logits = linear + table.dense[rows] @ dense + bias
            error = (1 / (1 + np.exp(-logits)) - labels[rows]) * importance[rows]
            gradient = np.bincount(buckets, weights=(error * scale)[owner], minlength=SIZE).astype(np.float32) / len(
                rows
            )
            gradient += rules.decay * weights
            step += 1
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient * gradient
            weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            dense_gradient = table.dense[rows].T @ error / len(rows) + rules.dense_decay * dense
            dense_second = 0.999 * dense_second + 0.001 * dense_gradient**2
            dense -= rate * dense_gradient / (np.sqrt(dense_second / (1 - 0.999**step)) + 1e-6)
            mean = float(error.mean())
            bias_second = 0.999 * bias_second + 0.001 * mean * mean
            bias -= rate * mean / (np.sqrt(bias_second / (1 - 0.999**step)) + 1e-6)
    return Fit(weights, dense, bias)


def learn(examples: list[Example], rules: Rules, rounds: int = 2) -> Fit:
    """Two rounds: with every window that may hold the attack, then with those that look most like it."""
    fitted = None
    for _ in range(rounds):
        windows, labels, weights = _chosen(examples, fitted)
        fitted = fit(windows, labels, weights, rules)
    assert fitted is not None
    return fitted


def _chosen(examples: list[Example], before: Fit | None) -> tuple[list[Window], Vector, Vector]:
    """The windows to learn from. Every family counts the same, however many rows of it there are."""
    windows: list[Window] = []
    labels: list[float] = []
    weights: list[float] = []
    sizes = Counter((example.sample.label, example.sample.family) for example in examples)
    for example in examples:
        label, family = example.sample.label, example.sample.family
        share = 1 / np.sqrt(sizes[label, family])
        if not label:
            picked = _telling(example.windows, before)
        elif any(window.attacked is not None for window in example.windows):
            picked = [window for window in example.windows if window.attacked]
        elif before is None or len(example.windows) <= 2:
            picked = example.windows
        else:
            scores = Table(example.windows).scores(before.weights, before.dense, before.bias)
            best = np.argsort(-scores)
            picked = [example.windows[place] for rank, place in enumerate(best) if rank < 2 or scores[place] > 1]
        for window in picked:
            windows.append(window)
            labels.append(float(label))
            weights.append(share / np.sqrt(len(picked)))
    label_array, weight_array = np.array(labels, np.float32), np.array(weights, np.float32)
    for label in (0.0, 1.0):
        chosen = label_array == label
        weight_array[chosen] *= len(windows) / 2 / max(1e-9, weight_array[chosen].sum())
    return windows, label_array, weight_array


def _telling(windows: list[Window], before: Fit | None) -> list[Window]:
    """Of an ordinary text a few windows from all over it, and those that were taken for an attack."""
    spread = windows[:: max(1, len(windows) // _SPREAD)][:_SPREAD]
    if before is None or len(windows) <= _SPREAD:
        return spread
    scores = Table(windows).scores(before.weights, before.dense, before.bias)
    worst = [windows[place] for place in np.argsort(-scores)[:_WORST]]
    return worst + [window for window in spread if not any(window is one for one in worst)]


def text_score(example: Example, fitted: Fit) -> float:
    """The score of a whole text: that of its worst window. What chance gives a text of many is for the caller to take
    off."""
    if not example.windows:
        return -20.0
    scores = Table(example.windows).scores(fitted.weights, fitted.dense, fitted.bias)
    return float(scores.max())
