"""The packaged model: the package's own vectors, without running the package."""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, ModelName, embedded_model, make_embedder
from annabelle.embeddings.embedded_model import LONGEST_TEXT, EmbeddedModel

MODEL = ModelName("embedded", "l2_supercat_256")

# The first four numbers of what the package's own `embed(…, norm=True)` gives for each text.
FROM_THE_PACKAGE = {
    "hello world, my sister lives in Turin": [0.03264, 0.07579, 0.02758, -0.02374],
    "Grüße aus München 😀": [-0.02477, 0.09364, 0.02446, -0.10853],
    "def f(x): return x  # 42": [0.04919, 0.00758, -0.16953, -0.08899],
    "a": [0.00909, 0.01155, -0.05027, 0.0374],
    "x" * 300: [0.09673, -0.04472, -0.06881, -0.00565],
    "  two  spaces\nand a line": [-0.03897, -0.08666, 0.02612, -0.02667],
    "日本語のテキスト": [-0.15657, 0.10267, 0.0168, -0.08131],
}


def installed() -> Path:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the installed package's files, to be damaged."""
    folder = tmp_path / "wordllama"
    for part in ("weights", "tokenizers"):
        shutil.copytree(installed() / part, folder / part)
    return folder


@pytest.mark.req("EMB-01")
async def test_vectors_are_those_of_the_package_and_it_is_never_imported() -> None:
    embedder = make_embedder(EmbeddingConfig(), None)
    rows = await embedder.embed(list(FROM_THE_PACKAGE))
    assert rows.dtype == np.float32
    assert rows.shape == (len(FROM_THE_PACKAGE), 256)
    np.testing.assert_allclose(rows[:, :4], list(FROM_THE_PACKAGE.values()), atol=2e-5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert str(embedder.model) == "embedded/l2_supercat_256"
    assert "wordllama" not in sys.modules


@pytest.mark.req("EMB-01")
async def test_what_means_the_same_is_near() -> None:
    embedder = EmbeddedModel(MODEL)
    rows = await embedder.embed(["My sister moved to Lisbon", "Where does my sister live?", "The invoice is overdue"])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1
    alone = [await embedder.embed([text], query=True) for text in ("My sister moved to Lisbon", "")]
    np.testing.assert_array_equal(alone[0][0], rows[0])
    assert not alone[1].any()
    assert (await embedder.embed([])).shape == (0, 256)


@pytest.mark.req("EMB-01")
async def test_a_megabyte_is_cut_and_counts_as_its_beginning() -> None:
    embedder = EmbeddedModel(MODEL)
    text = "the cat sat on the mat. " * 50_000
    whole, beginning = await embedder.embed([text, text[:LONGEST_TEXT]])
    np.testing.assert_array_equal(whole, beginning)


@pytest.mark.req("EMB-01")
async def test_blank_and_unsendable_texts_never_raise() -> None:
    embedder = EmbeddedModel(MODEL)
    rows = await embedder.embed(["", " \n\t", "\0", "\ud800", "a\0b", "👩‍👩‍👧", "\x1b[31m", "\uffff"])
    assert not rows[:3].any()
    np.testing.assert_allclose(np.linalg.norm(rows[3:], axis=1), 1, atol=1e-5)


@pytest.fixture(scope="module")
def opened() -> EmbeddedModel:
    return EmbeddedModel(MODEL)


@pytest.mark.req("EMB-01")
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=())), max_size=4))
async def test_every_text_has_a_vector_of_length_one_or_none(opened: EmbeddedModel, texts: list[str]) -> None:
    lengths = np.linalg.norm(await opened.embed(texts), axis=1)
    assert all(length == 0 or abs(length - 1) < 1e-4 for length in lengths)


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("damage", ["no weights", "no vocabulary", "cut", "length", "header", "kind", "vocabulary"])
async def test_a_damaged_package_is_a_sentence_and_not_a_crash(copy: Path, damage: str) -> None:
    weights, vocabulary = copy / "weights/l2_supercat_256.safetensors", copy / "tokenizers"
    data = weights.read_bytes()
    if damage == "no weights":
        weights.unlink()
    elif damage == "no vocabulary":
        shutil.rmtree(vocabulary)
    elif damage == "cut":
        weights.write_bytes(data[: len(data) // 2])
    elif damage == "length":
        weights.write_bytes(b"\xff" * 8 + data[8:])
    elif damage == "header":
        weights.write_bytes(data[:8] + b"?" + data[9:])
    elif damage == "kind":
        header = json.dumps({"embedding.weight": {"dtype": "F32", "shape": [32000, 256], "data_offsets": [0, 4]}})
        weights.write_bytes(len(header).to_bytes(8, "little") + header.encode() + data[200:])
    else:
        next(vocabulary.glob("*.json")).write_text("{}")
    embedder = EmbeddedModel(MODEL, copy)
    for _ in range(2):
        with pytest.raises(EmbeddingsUnavailable, match="damaged") as caught:
            await embedder.embed(["hello"])
        assert "Install Annabelle again" in str(caught.value.hint)


@pytest.mark.req("EMB-01")
async def test_a_missing_package_is_a_sentence_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_model, "load_weights", inspect.unwrap(embedded_model.load_weights))
    monkeypatch.setattr("annabelle.embeddings.embedded_model.find_spec", lambda _name: None)
    with pytest.raises(EmbeddingsUnavailable, match="not installed"):
        await EmbeddedModel(MODEL).embed(["hello"])


@pytest.mark.req("EMB-01")
async def test_a_library_that_can_not_be_loaded_is_a_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("annabelle.embeddings.embedded_model", "annabelle.embeddings.embedded_model"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    embedder = make_embedder(EmbeddingConfig(), None)
    with pytest.raises(EmbeddingsUnavailable, match="tokenizers") as caught:
        await embedder.embed(["hello"])
    assert "words alone" in str(caught.value.hint)
