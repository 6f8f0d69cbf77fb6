"""Classifier of the embedded scanner: a linear model on hashed features, summed over windows."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from annabelle.servers.guardian.document import WIDTHS, Window

Buckets = NDArray[np.int64]
Hashes = NDArray[np.uint64]

PIECES: Final = (3, 4, 5)
PIECE_BITS: Final = 17
WORD_BITS: Final = 17
KIND_BITS: Final = 16
KIND_TABLE_BITS: Final = 17
SIZE: Final = (1 << PIECE_BITS) + (1 << WORD_BITS) + (1 << KIND_BITS)

_FACTOR: Final = 0x9E3779B97F4A7C15 | 1
_INVERSE: Final = pow(_FACTOR, -1, 1 << 64)
_MIX: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_FOLD: Final = np.uint64(29)
_BLANK: Final = 32
_DIGIT: Final = 48
_REPEATED: Final = 32
_REPEATED_WITHIN: Final = WIDTHS[0] // 2
"""So that some window holds all of what is repeated the first time."""
_WORD_SALTS: Final = (np.uint64(0x1), np.uint64(0xA5A5A5A5), np.uint64(0x5BD1E995), np.uint64(0x27D4EB2F))
_KIND_SALTS: Final = (np.uint64(0x3), np.uint64(0x7FEB352D), np.uint64(0x846CA68B), np.uint64(0x9E3779B1))


@dataclass(frozen=True, slots=True)
class Features:
    """Buckets by position: `pieces[n][i]` is at character i, `words[n][t]` at word t, which begins at `starts[t]`.

    `fresh[i]` is false where the text repeats itself: a line said a hundred times weighs no more than said once.
    """

    length: int
    pieces: tuple[Buckets, ...]
    words: tuple[Buckets, ...]
    starts: NDArray[np.int64]
    fresh: NDArray[np.bool_]


def read_features(text: str, kinds: NDArray[np.uint16]) -> Features:
    """Features of a text. `kinds` maps the hash of a word to its kind."""
    signs = np.frombuffer(text.lower().encode("utf-32-le", errors="replace"), dtype=np.uint32).astype(np.uint64)
    digits = (signs >= _DIGIT) & (signs <= _DIGIT + 9)
    signs[digits] = _DIGIT
    signs[signs < _BLANK] = _BLANK
    sums, inverses = _running_sums(signs)
    pieces = tuple(_piece_buckets(sums, inverses, size) for size in PIECES)
    starts, ends = _word_bounds(signs)
    hashes = _mix_hashes((sums[ends] - sums[starts]) * inverses[starts])
    kind = kinds[(hashes >> np.uint64(64 - KIND_TABLE_BITS)).astype(np.int64)].astype(np.uint64)
    word_base, kind_base = 1 << PIECE_BITS, (1 << PIECE_BITS) + (1 << WORD_BITS)
    words = (
        *_word_chains(hashes, _WORD_SALTS, WORD_BITS, word_base),
        *_word_chains(kind + np.uint64(1), _KIND_SALTS, KIND_BITS, kind_base),
    )
    return Features(len(signs), pieces, words, starts, _find_fresh(sums, inverses))


def find_word_slot(word: str) -> int:
    """Index of a word in the table of kinds."""
    signs = np.frombuffer(word.lower().encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    sums, _ = _running_sums(signs)
    return int(_mix_hashes(sums[-1:])[0] >> np.uint64(64 - KIND_TABLE_BITS))


def _running_sums(signs: Hashes) -> tuple[Hashes, Hashes]:
    powers = _powers(_FACTOR, len(signs) + 1)
    sums = np.zeros(len(signs) + 1, dtype=np.uint64)
    np.cumsum((signs + np.uint64(1)) * powers[:-1], out=sums[1:])
    return sums, _powers(_INVERSE, len(signs) + 1)


def _powers(factor: int, count: int) -> Hashes:
    powers = np.full(count, factor, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def _mix_hashes(hashes: Hashes) -> Hashes:
    return (hashes ^ (hashes >> _FOLD)) * _MIX


def _piece_buckets(sums: Hashes, inverses: Hashes, size: int) -> Buckets:
    return (_mix_hashes(_piece_hashes(sums, inverses, size)) >> np.uint64(64 - PIECE_BITS)).astype(np.int64)


def _piece_hashes(sums: Hashes, inverses: Hashes, size: int) -> Hashes:
    if len(sums) <= size:
        return np.zeros(0, dtype=np.uint64)
    return (sums[size:] - sums[:-size]) * inverses[: len(sums) - size] + np.uint64(size)


def _find_fresh(sums: Hashes, inverses: Hashes) -> NDArray[np.bool_]:
    """Where nothing begins that was there shortly before."""
    hashes = _piece_hashes(sums, inverses, _REPEATED)
    order = np.argsort(hashes, kind="stable")
    repeats = (np.diff(hashes[order]) == 0) & (np.diff(order) <= _REPEATED_WITHIN)
    fresh = np.ones(len(sums) - 1, dtype=np.bool_)
    fresh[order[1:][repeats]] = False
    return fresh


def _word_chains(hashes: Hashes, salts: tuple[np.uint64, ...], bits: int, base: int) -> tuple[Buckets, ...]:
    """Each word alone, with the next, with the one after it, and with both."""
    alone, pair, gap, three = salts
    second, third = hashes[1:], hashes[2:]
    turned = hashes * _MIX
    raws = (
        hashes + alone,
        turned[:-1] + second * pair,
        turned[:-2] + third * gap,
        turned[:-2] + (second[:-1] * pair) + (third * three),
    )
    shift = np.uint64(64 - bits)
    return tuple((_mix_hashes(raw * _MIX) >> shift).astype(np.int64) + base for raw in raws)


def _word_bounds(signs: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bounds of words: runs of letters and digits. Each Chinese, Japanese or Korean character is a word."""
    small = signs < np.uint64(128)
    letters = (signs >= np.uint64(97)) & (signs <= np.uint64(122)) | (signs == np.uint64(_DIGIT))
    foreign = ~small & ~((signs >= np.uint64(0x2000)) & (signs < np.uint64(0x2070))) & (signs >= np.uint64(0xC0))
    ideograms = (
        (signs >= np.uint64(0x2E80))
        & (signs < np.uint64(0xD7B0))
        & ~((signs >= np.uint64(0x3000)) & (signs < np.uint64(0x3040)))
    )
    inside = (letters | foreign) & ~((signs >= np.uint64(0x3000)) & (signs < np.uint64(0x3040)))
    edge = np.zeros(len(signs) + 2, dtype=np.int8)
    edge[1:-1] = inside
    steps = np.diff(edge)
    begins, ends = steps[:-1] == 1, steps[1:] == -1
    if ideograms.any():
        begins |= ideograms
        begins[1:] |= ideograms[:-1] & inside[1:]
        ends |= ideograms
        ends[:-1] |= ideograms[1:] & inside[:-1]
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


WEIGHTS_FILE: Final = "weights.npz"
_MAX_WINDOWS: Final = 128
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassifierHead:
    """Trained parameters of one channel: weights, cue weights and score calibration."""

    weights: NDArray[np.float32]
    cues: NDArray[np.float32]
    bias: float
    slope: float
    middle: float
    per_doubling: float

    def score(self, logit: float, windows: int) -> float:
        """Score from 0 to 1. Long texts need a higher sum: with many windows, high sums occur by chance."""
        corrected = logit - self.per_doubling * doublings(windows)
        return float(1 / (1 + np.exp(-np.clip(self.slope * (corrected - self.middle), -30, 30))))


def doublings(windows: int) -> float:
    """log2 of the number of windows, bounded so that padding cannot hide an attack."""
    return float(np.log2(min(_MAX_WINDOWS, max(1, windows))))


@dataclass(frozen=True, slots=True)
class ClassifierModel:
    kinds: NDArray[np.uint16]
    output: ClassifierHead
    message: ClassifierHead


def load_model() -> ClassifierModel:
    with (
        files("annabelle.servers.guardian").joinpath(WEIGHTS_FILE).open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        return ClassifierModel(stored["kinds"], _load_head(stored, "output"), _load_head(stored, "message"))


def save_model(path: str, model: ClassifierModel) -> None:
    """Save the model, with weights quantized to one byte."""
    stored: dict[str, NDArray[np.generic]] = {"kinds": model.kinds}
    for name, head in (("output", model.output), ("message", model.message)):
        step = float(np.abs(head.weights).max()) / 127 or 1.0
        stored[f"{name}_weights"] = np.round(head.weights / step).astype(np.int8)
        stored[f"{name}_cues"] = head.cues.astype(np.float32)
        numbers = [step, head.bias, head.slope, head.middle, head.per_doubling]
        stored[f"{name}_numbers"] = np.array(numbers, dtype=np.float64)
    np.savez_compressed(path, allow_pickle=False, **stored)


def _load_head(stored: np.lib.npyio.NpzFile, name: str) -> ClassifierHead:
    step, bias, slope, middle, per_doubling = (float(number) for number in stored[f"{name}_numbers"])
    weights = stored[f"{name}_weights"].astype(np.float32) * np.float32(step)
    return ClassifierHead(weights, stored[f"{name}_cues"], bias, slope, middle, per_doubling)


def window_sums(features: Features, head: ClassifierHead, spans: list[Window]) -> Scores:
    """Sum of each window, without its cues."""
    bounds = np.array(spans, dtype=np.int64)
    starts, ends = bounds[:, 0], bounds[:, 1]
    total = np.zeros(len(spans))
    count = np.ones(len(spans))
    for pieces in features.pieces:
        first, last = np.minimum(starts, len(pieces)), np.minimum(ends, len(pieces))
        fresh = features.fresh[: len(pieces)]
        total += _range_sums(head.weights[pieces] * fresh, first, last)
        count += _range_sums(fresh, first, last)
    first_word, last_word = np.searchsorted(features.starts, starts), np.searchsorted(features.starts, ends)
    for words in features.words:
        first, last = np.minimum(first_word, len(words)), np.minimum(last_word, len(words))
        fresh = features.fresh[features.starts[: len(words)]]
        total += _range_sums(head.weights[words] * fresh, first, last)
        count += _range_sums(fresh, first, last)
    return total / np.sqrt(count) + head.bias


def counts_within(places: list[int], spans: list[Window]) -> NDArray[np.int64]:
    bounds = np.searchsorted(np.array(places, dtype=np.int64), np.array(spans, dtype=np.int64))
    return bounds[:, 1] - bounds[:, 0]


def _range_sums(values: NDArray[np.float32 | np.bool_], first: NDArray[np.int64], last: NDArray[np.int64]) -> Scores:
    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums[last] - sums[first]
