"""Whose vectors are whose: a text has another key for each provider and model, and no file is read as another's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annabelle.embeddings import ModelName
from annabelle.embeddings.cache import VectorCacheFile, cache_path, make_cache_key

MODEL = ModelName("ollama", "some-model")
OTHERS = (ModelName("lmstudio", "some-model"), ModelName("ollama", "other-model"))
ROW = np.asarray([1, 0, 0, 0], np.float32)


@pytest.mark.req("SEL-07", "EMB-01")
def test_provider_model_and_text_each_make_another_key_and_another_file(tmp_path: Path) -> None:
    assert len({make_cache_key(model, text) for model in (MODEL, *OTHERS) for text in ("tea", "Tea", "tea ")}) == 9
    assert len({cache_path(tmp_path, model) for model in (MODEL, *OTHERS)}) == 3
    assert make_cache_key(ModelName("a", "b-c"), "d") != make_cache_key(ModelName("a-b", "c"), "d")


@pytest.mark.req("SEL-07", "EMB-01")
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_file_of_another_model_is_not_read_and_is_replaced(tmp_path: Path, other: ModelName) -> None:
    path, key, new_key = tmp_path / "copied.vectors", bytes(32), bytes([1] * 32)
    VectorCacheFile(path, other).add({key: ROW})
    cache = VectorCacheFile(path, MODEL)
    assert cache.read([key]) == {}
    cache.add({new_key: ROW[::-1]})
    found = cache.read([key, new_key])
    assert {name: row.tolist() for name, row in found.items()} == {new_key: [0, 0, 0, 1]}
    assert VectorCacheFile(path, other).read([key]) == {}, "nothing of the other model is left in it"


@pytest.mark.req("SEL-07")
def test_keys_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    alike = [b"the same" + bytes([number] * 24) for number in range(3)]
    cache = VectorCacheFile(tmp_path / "some.vectors", MODEL)
    cache.add({key: np.roll(ROW, place) for place, key in enumerate(alike[:2])})
    found = cache.read(alike)
    assert {key: row.tolist() for key, row in found.items()} == {alike[0]: [1, 0, 0, 0], alike[1]: [0, 1, 0, 0]}
