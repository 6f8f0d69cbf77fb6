"""Trains the learned selection on generated sentences: `make train-selector`."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from training.data import load_book, load_schemas
from training.sentences import SentenceMaker

from annabelle.language.tool_odds import BUCKETS, NO_TOOL, WEIGHTS, buckets, features, split_words

WIDTH = 48
EPOCHS = 5
DROPPED = 0.3
"""The share of a sentence's pieces that is left out each time, so that no single word decides alone."""
BATCH = 64
RATE = 0.25
SELDOM = 5


Labelled = tuple[list[str], str, str]
"""The words of a message, the tool they ask for, and the tool of the message before."""


class Trainer:
    """Softmax over a bag of pieces with few dimensions, by Adagrad; the same seed gives the same weights."""

    def __init__(self, names: Sequence[str], seed: int = 0, width: int = WIDTH) -> None:
        draw = np.random.default_rng(seed)
        self.names = tuple(names)
        self._place = {name: place for place, name in enumerate(names)}
        self.pieces = draw.normal(0, 0.05, (BUCKETS, width)).astype(np.float32)
        self.tools = draw.normal(0, 0.05, (width, len(names))).astype(np.float32)
        self.bias = np.zeros(len(names), np.float32)
        self._seen = [np.full(BUCKETS, 1e-4, np.float32), np.full_like(self.tools, 1e-4), np.full_like(self.bias, 1e-4)]
        self._draw, self._chance = random.Random(seed), draw

    def train(self, make_rows: Callable[[int], Sequence[Labelled]], epochs: int = EPOCHS) -> None:
        """On rows that are made anew for each epoch."""
        steps, step, began = 0, 0, time.monotonic()
        for epoch in range(epochs):
            made = [(features(words, after), self._place[name]) for words, name, after in make_rows(epoch) if words]
            steps = steps or epochs * (len(made) // BATCH)
            self._draw.shuffle(made)
            loss = 0.0
            for start in range(0, len(made) - BATCH + 1, BATCH):
                batch = [(self._thin(found), place) for found, place in made[start : start + BATCH]]
                loss += self._step(batch, RATE * max(0.0, 1 - step / steps))
                step += 1
            mean, seconds = loss / (len(made) // BATCH), time.monotonic() - began
            print(f"epoch {epoch + 1} of {epochs}: loss {mean:.4f}, {seconds:.0f} s", file=sys.stderr)

    def _thin(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        kept = found[self._chance.random(len(found)) >= DROPPED]
        return kept if len(kept) else found

    def _step(self, batch: list[tuple[NDArray[np.int64], int]], rate: float) -> float:
        ids = np.concatenate([found for found, _ in batch])
        lengths = np.array([len(found) for found, _ in batch])
        wanted = np.array([place for _, place in batch])
        weight = np.repeat(1 / np.sqrt(lengths), lengths).astype(np.float32)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        mean = np.add.reduceat(self.pieces[ids] * weight[:, None], starts, axis=0)
        scores = mean @ self.tools + self.bias
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds = scores / scores.sum(axis=1, keepdims=True)
        loss = -float(np.log(odds[np.arange(len(batch)), wanted] + 1e-9).mean())
        odds[np.arange(len(batch)), wanted] -= 1
        odds /= len(batch)
        back = odds @ self.tools.T
        self._move(self.tools, mean.T @ odds, self._seen[1], rate)
        self._move(self.bias, odds.sum(axis=0), self._seen[2], rate)
        unique, inverse = np.unique(ids, return_inverse=True)
        change = np.zeros((len(unique), back.shape[1]), np.float32)
        np.add.at(change, inverse, np.repeat(back, lengths, axis=0) * weight[:, None])
        self._seen[0][unique] += np.square(change).mean(axis=1)
        self.pieces[unique] -= rate * change / np.sqrt(self._seen[0][unique])[:, None]
        return loss

    @staticmethod
    def _move(values: NDArray[np.float32], change: NDArray[np.float32], seen: NDArray[np.float32], rate: float) -> None:
        seen += np.square(change)
        values -= rate * change / np.sqrt(seen)

    def save(self, file: Path, words: Sequence[str]) -> None:
        """One byte a weight; and which words are known."""
        scale = float(np.quantile(np.abs(self.pieces), 0.9999)) / 127  # a few outliers would cost all others precision
        known = np.zeros(BUCKETS, np.bool_)
        known[buckets(words)] = True
        np.savez_compressed(
            file,
            names=np.array(self.names),
            words=np.packbits(known),
            pieces=np.clip(np.round(self.pieces / scale), -127, 127).astype(np.int8),
            piece_scale=scale,
            tools=self.tools.astype(np.float16),
            bias=self.bias.astype(np.float16),
        )


def main() -> None:
    book, schemas = load_book(), load_schemas()

    def make_rows(epoch: int) -> list[Labelled]:
        return [
            (split_words(row.user), row.tool or NO_TOOL, "" if row.before is None else row.before.tool)
            for row in SentenceMaker(book, schemas, seed=1 + epoch).rows()
        ]

    rows = make_rows(0)
    counted = Counter(word for words, *_ in rows for word in set(words))
    print(f"{len(rows)} sentences, {len(counted)} words", file=sys.stderr)
    trainer = Trainer(sorted({name for _, name, *_ in rows}))
    trainer.train(make_rows)
    trainer.save(WEIGHTS, sorted(word for word, times in counted.items() if times >= SELDOM))
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size / 1e6:.2f} MB, {len(trainer.names) - 1} tools", file=sys.stderr)


if __name__ == "__main__":
    main()
