"""The nearest vectors, exactly, while rows come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from annabelle.embeddings.matrix import RowBlocks, VectorMatrix

Steps = list[tuple[str, list[int]]]

keys = st.integers(-20, 60) | st.sampled_from([2**62, -(2**62)])
steps = st.lists(st.tuples(st.sampled_from(["put", "many", "drop"]), st.lists(keys, max_size=30)), max_size=30)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def clustered(rng: np.random.Generator, count: int, dimension: int, clusters: int) -> np.ndarray:
    centres = rng.standard_normal((clusters, dimension))
    return unit(centres[rng.integers(0, clusters, count)] + 0.8 * rng.standard_normal((count, dimension)))


def small_blocks(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Blocks of a few rows, so that few rows fill several."""
    original = RowBlocks.__init__

    def init(self: RowBlocks, dimension: int) -> None:
        original(self, dimension)
        self._size = rows

    monkeypatch.setattr(RowBlocks, "__init__", init)


def agrees(
    matrix: VectorMatrix, model: dict[int, np.ndarray], query: np.ndarray, limit: int, among: set[int] | None
) -> None:
    """Compared by score, as which of two equal rows is cut off at the end is left open."""
    found = matrix.nearest(query, limit, among)
    possible = {key: float(row @ query) for key, row in model.items() if among is None or key in among}
    expected = sorted(possible.values(), reverse=True)[:limit]
    np.testing.assert_allclose([score for _, score in found], expected, atol=1e-5)
    assert len({key for key, _ in found}) == len(found)
    for key, score in found:
        assert score == pytest.approx(possible[key], abs=1e-5)


@pytest.mark.req("MEM-03")
@settings(max_examples=150, deadline=None)
@given(steps=steps, seed=st.integers(0, 1000), limit=st.integers(0, 12), among=st.none() | st.sets(keys))
def test_the_nearest_are_those_of_a_plain_search_whatever_came_and_went(
    steps: Steps, seed: int, limit: int, among: set[int] | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, 7)
        rng = np.random.default_rng(seed)
        matrix, model = VectorMatrix(5), dict[int, np.ndarray]()
        for kind, chosen in steps:
            rows = unit(rng.standard_normal((len(chosen), 5)))
            if kind == "many":
                matrix.set_rows(chosen, rows)
                model.update(zip(chosen, rows, strict=True))
            elif kind == "drop":
                matrix.remove_rows(chosen)
                for key in chosen:
                    model.pop(key, None)
            else:
                for key, row in zip(chosen, rows, strict=True):
                    matrix.set_row(key, row)
                    model[key] = row
        query = unit(rng.standard_normal(5))
        agrees(matrix, model, query, limit, among)
        assert len(matrix) == len(model)
        asked = list(range(-20, 61))
        expected = [model[key] @ query if key in model else 0 for key in asked]
        np.testing.assert_allclose(matrix.scores(query, asked), expected, atol=1e-5)
        for key in asked:
            row = matrix.get(key)
            assert (key in matrix) == (key in model) == (row is not None)
            if row is not None:
                np.testing.assert_array_equal(row, model[key])


@pytest.mark.req("MEM-03")
def test_thousands_of_changes_one_by_one_keep_keys_and_rows_together() -> None:
    rng = np.random.default_rng(3)
    matrix, model = VectorMatrix(4, capacity=10), dict[int, np.ndarray]()
    rows = unit(rng.standard_normal((6000, 4)))
    for place, key in enumerate(rng.integers(0, 2500, 6000).tolist()):
        if place % 3 == 2:
            matrix.remove_rows([key])
            model.pop(key, None)
        else:
            matrix.set_row(key, rows[place])
            model[key] = rows[place]
    assert len(matrix) == len(model)
    agrees(matrix, model, rows[0], 50, None)
    agrees(matrix, model, rows[1], 50, set(range(0, 2500, 7)))
    matrix.remove_rows(range(2500))
    assert len(matrix) == 0
    assert matrix.nearest(rows[0], 5) == []


@pytest.mark.req("MEM-03")
@pytest.mark.parametrize("dimension", [100, 256])
def test_the_sign_filter_loses_next_to_nothing(dimension: int) -> None:
    # The queries come from the same clusters: near nothing at all, any ten rows are as good as any others.
    made = clustered(np.random.default_rng(dimension), 12_060, dimension, 300)
    rows, queries = made[60:], made[:60]
    exact, filtered = VectorMatrix(dimension), VectorMatrix(dimension, prefilter_rows=5000)
    for matrix in (exact, filtered):
        matrix.set_rows(np.arange(12_000), rows)
    hits = 0
    for query in queries:
        expected = {key for key, _ in exact.nearest(query, 10)}
        hits += len(expected & {key for key, _ in filtered.nearest(query, 10)})
    assert hits / (10 * len(queries)) >= 0.99


@pytest.mark.req("MEM-03")
def test_the_sign_filter_keeps_to_the_keys_that_were_asked_for_and_follows_every_change() -> None:
    rng = np.random.default_rng(5)
    rows = clustered(rng, 6000, 64, 100)
    matrix = VectorMatrix(64, prefilter_rows=1000)
    matrix.set_rows(range(6000), rows)
    even = np.arange(0, 6000, 2)
    found = matrix.nearest(rows[11], 10, even)
    assert all(key % 2 == 0 for key, _ in found)
    assert found == matrix.nearest(rows[11], 10, set(even.tolist()))
    assert matrix.nearest(rows[11], 1)[0][0] == 11
    matrix.remove_rows([11])
    assert matrix.nearest(rows[11], 1)[0][0] != 11
    matrix.set_row(5999, rows[11])
    assert matrix.nearest(rows[11], 1)[0][0] == 5999
    assert matrix.nearest(rows[11], 3, [5, 7, 5999, 123_456])[0][0] == 5999
    assert len(matrix.nearest(rows[11], 10_000)) == 5999


@pytest.mark.req("EMB-01")
def test_a_vector_of_another_model_does_not_come_in() -> None:
    matrix = VectorMatrix(4)
    row = np.ones(4, np.float32)
    matrix.set_row(1, row / 2)
    for wrong in (np.ones(3, np.float32), np.ones(5, np.float32), np.ones((1, 4), np.float32)):
        with pytest.raises(ValueError, match="does not belong"):
            matrix.set_row(1, wrong)
        with pytest.raises(ValueError, match="does not belong"):
            matrix.nearest(wrong, 1)
        with pytest.raises(ValueError, match="does not belong"):
            matrix.scores(wrong, [1])
    with pytest.raises(ValueError, match="does not belong"):
        matrix.set_rows([1, 2], np.ones((2, 3), np.float32))
    assert matrix.nearest(row, 2) == [(1, 2.0)]


@pytest.mark.req("MEM-03")
def test_a_damaged_row_is_never_near_and_equal_rows_come_in_the_order_of_their_keys() -> None:
    matrix = VectorMatrix(2)
    east = np.asarray([1, 0], np.float32)
    matrix.set_rows([9, 4, 6], np.asarray([[np.nan, 1], [1, 0], [1, 0]], np.float32))
    assert matrix.nearest(east, 3) == [(4, 1.0), (6, 1.0), (9, 0.0)]
    matrix.set_row(4, np.asarray([np.inf, 0], np.float32))
    assert matrix.nearest(east, 1) == [(6, 1.0)]


@pytest.mark.req("MEM-03")
def test_a_row_that_was_handed_out_does_not_change_with_the_matrix() -> None:
    matrix = VectorMatrix(2)
    matrix.set_row(1, np.asarray([1, 0], np.float32))
    row = matrix.get(1)
    matrix.set_row(1, np.asarray([0, 1], np.float32))
    assert row is not None
    assert row.tolist() == [1, 0]


def test_rows_that_are_nearly_the_same_are_found_by_their_signs_and_no_others() -> None:
    rng = np.random.default_rng(5)
    rows = clustered(rng, 3000, 256, 40)
    matrix = VectorMatrix(256)
    matrix.set_rows(list(range(3000)), rows)
    for number in range(60):
        asked = unit(rows[number] + rng.uniform(0.0, 0.05) * rng.standard_normal(256))
        exact = {key for key, cosine in enumerate((rows @ asked).tolist()) if cosine >= 0.9}
        assert {key for key, _ in matrix.nearly_equal(asked, 0.9, 3000)} == exact
    assert matrix.nearly_equal(rows[7], 0.999, 5)[0][0] == 7
    assert matrix.nearly_equal(-rows[7], 0.9, 5) == []
    assert VectorMatrix(256).nearly_equal(rows[7], 0.9, 5) == []
