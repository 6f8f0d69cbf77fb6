"""Whose vectors are whose: a text has another key for each provider and model, and no file is read as another's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annabelle.embeddings import ModelName
from annabelle.embeddings.cache import VectorCache, make_cache_key

MODEL = ModelName("ollama", "some-model")
OTHERS = (ModelName("lmstudio", "some-model"), ModelName("ollama", "other-model"))
ROW = np.asarray([1, 0, 0, 0], np.float32)


@pytest.mark.req("SEL-07", "EMB-01")
def test_provider_model_and_text_each_make_another_key() -> None:
    assert len({make_cache_key(model, text) for model in (MODEL, *OTHERS) for text in ("tea", "Tea", "tea ")}) == 9
    assert make_cache_key(ModelName("a", "b-c"), "d") != make_cache_key(ModelName("a-b", "c"), "d")


@pytest.mark.req("SEL-07", "EMB-01")
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_vectors_of_another_model_are_not_read_and_are_removed(tmp_path: Path, other: ModelName) -> None:
    cache = VectorCache(tmp_path)
    old, new = make_cache_key(other, "tea"), make_cache_key(MODEL, "tea")
    cache.add(other, {old: ROW})
    assert cache.read([new]) == {}
    cache.add(MODEL, {new: ROW[::-1]})
    assert {name: row.tolist() for name, row in cache.read([old, new]).items()} == {new: [0, 0, 0, 1]}


@pytest.mark.req("SEL-07")
def test_keys_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    alike = [b"the same" + bytes([number] * 24) for number in range(3)]
    cache = VectorCache(tmp_path)
    cache.add(MODEL, {key: np.roll(ROW, place) for place, key in enumerate(alike[:2])})
    found = cache.read(alike)
    assert {key: row.tolist() for key, row in found.items()} == {alike[0]: [1, 0, 0, 0], alike[1]: [0, 1, 0, 0]}
