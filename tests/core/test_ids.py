"""Ids sort by the order they were made in, whatever the clock does."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, strategies as st

from annabelle.core import ids
from annabelle.core.ids import IdMaker, is_id, new_id


@given(st.lists(st.integers(min_value=0, max_value=2**47), min_size=2, max_size=60))
def test_ids_never_go_backwards_when_the_clock_jumps(clock: list[int]):
    readings = iter(clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids.time, "time_ns", lambda: next(readings) * 1_000_000)
        maker = IdMaker()
        made = [maker.make("msg") for _ in clock]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_made_by_many_threads_at_once_are_all_different():
    maker, made = IdMaker(), list[str]()
    threads = [threading.Thread(target=lambda: made.extend(maker.make("tr") for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4000


def test_an_id_is_known_by_its_shape_and_its_kind():
    made = new_id("msg")
    assert is_id(made)
    assert is_id(made, "msg")
    assert not is_id(made, "tr")


@pytest.mark.parametrize(
    "text", ["", "msg_", "msg_short", "MSG_" + "0" * 26, "msg_" + "u" * 26, "msg_" + "0" * 26 + "\n"]
)
def test_other_text_is_no_id(text: str):
    assert not is_id(text)
