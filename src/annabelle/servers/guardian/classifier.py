"""The classifier of the embedded scanner: one weight for each feature, summed over windows of the text."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from annabelle.servers.guardian.features import Features, read_features
from annabelle.servers.guardian.windows import Window

WEIGHTS_FILE: Final = "weights.npz"
_MOST_WINDOWS: Final = 128
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Head:
    """What was learnt for one channel: weights of features and of cues, and how a sum becomes a score."""

    weights: NDArray[np.float32]
    cues: NDArray[np.float32]
    bias: float
    slope: float
    middle: float
    per_doubling: float

    def score(self, logit: float, windows: int) -> float:
        """0 to 1. Many windows make a high sum by chance likelier, so a long text needs more."""
        corrected = logit - self.per_doubling * doublings(windows)
        return float(1 / (1 + np.exp(-np.clip(self.slope * (corrected - self.middle), -30, 30))))


def doublings(windows: int) -> float:
    """How often one window doubles to give so many. Bounded: a flood of words must not drown an order."""
    return float(np.log2(min(_MOST_WINDOWS, max(1, windows))))


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that was learnt."""

    kinds: NDArray[np.uint16]
    output: Head
    message: Head


def load_model() -> Model:
    """The weights that come with the package."""
    with (
        files("annabelle.servers.guardian").joinpath(WEIGHTS_FILE).open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        return Model(stored["kinds"], _head(stored, "output"), _head(stored, "message"))


def save_model(path: str, model: Model) -> None:
    """Weights are rounded to a byte each: their sum over a window does not notice."""
    stored: dict[str, NDArray[np.generic]] = {"kinds": model.kinds}
    for name, head in (("output", model.output), ("message", model.message)):
        step = float(np.abs(head.weights).max()) / 127 or 1.0
        stored[f"{name}_weights"] = np.round(head.weights / step).astype(np.int8)
        stored[f"{name}_cues"] = head.cues.astype(np.float32)
        numbers = [step, head.bias, head.slope, head.middle, head.per_doubling]
        stored[f"{name}_numbers"] = np.array(numbers, dtype=np.float64)
    np.savez_compressed(path, allow_pickle=False, **stored)


def _head(stored: np.lib.npyio.NpzFile, name: str) -> Head:
    step, bias, slope, middle, per_doubling = (float(number) for number in stored[f"{name}_numbers"])
    weights = stored[f"{name}_weights"].astype(np.float32) * np.float32(step)
    return Head(weights, stored[f"{name}_cues"], bias, slope, middle, per_doubling)


def window_sums(features: Features, head: Head, spans: list[Window]) -> Scores:
    """The sum of each window, without its cues."""
    bounds = np.array(spans, dtype=np.int64)
    starts, ends = bounds[:, 0], bounds[:, 1]
    total = np.zeros(len(spans))
    count = np.ones(len(spans))
    for pieces in features.pieces:
        first, last = np.minimum(starts, len(pieces)), np.minimum(ends, len(pieces))
        total += _between(head.weights[pieces], first, last)
        count += last - first
    first_word, last_word = np.searchsorted(features.starts, starts), np.searchsorted(features.starts, ends)
    for words in features.words:
        first, last = np.minimum(first_word, len(words)), np.minimum(last_word, len(words))
        total += _between(head.weights[words], first, last)
        count += last - first
    return total / np.sqrt(count) + head.bias


def counts_within(places: list[int], spans: list[Window]) -> NDArray[np.int64]:
    """How many of the places are in each window."""
    bounds = np.searchsorted(np.array(places, dtype=np.int64), np.array(spans, dtype=np.int64))
    return bounds[:, 1] - bounds[:, 0]


def _between(values: NDArray[np.float32], first: NDArray[np.int64], last: NDArray[np.int64]) -> Scores:
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums[last] - sums[first]


__all__ = ["Head", "Model", "counts_within", "doublings", "load_model", "read_features", "save_model", "window_sums"]
