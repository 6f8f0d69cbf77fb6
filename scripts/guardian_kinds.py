"""Sorts words into kinds by their packaged vectors, so that what is learnt of one word holds for its neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from annabelle.embeddings.config import EmbeddingConfig
from annabelle.embeddings.embedded_model import load_weights
from annabelle.servers.guardian.classifier import KIND_TABLE_BITS, find_word_slot

KINDS = 500
_ROUNDS = 12


def make_kinds(seed: int) -> NDArray[np.uint16]:
    """For the slot of each known word the number of its kind, from 1; 0 for words nobody knows."""
    weights = load_weights(EmbeddingConfig.from_environment().model)
    words = sorted({word.lstrip("Ġ▁").lower() for word in weights.tokenizer.get_vocab() if word.lstrip("Ġ▁").isalpha()})
    words = [word for word in words if 2 <= len(word) <= 20]
    vectors = np.stack([weights.vector(word) for word in words])
    groups = _grouped(vectors, seed)
    table = np.zeros(1 << KIND_TABLE_BITS, dtype=np.uint16)
    for word, group in zip(words, groups, strict=True):
        table[find_word_slot(word)] = group + 1
    return table


def _grouped(vectors: NDArray[np.float32], seed: int) -> NDArray[np.int64]:
    chance = np.random.default_rng(seed)
    centres = vectors[np.sort(chance.choice(len(vectors), min(KINDS, len(vectors)), replace=False))].copy()
    groups = np.zeros(len(vectors), dtype=np.int64)
    for _ in range(_ROUNDS):
        groups = np.argmax(vectors @ centres.T, axis=1)
        for group in range(len(centres)):
            members = vectors[groups == group]
            if len(members):
                mean = members.mean(axis=0)
                centres[group] = mean / max(1e-9, float(np.linalg.norm(mean)))
    return groups
