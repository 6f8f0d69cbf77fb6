"""Pages of a list: each item once, in order, and a strange token is a mistake with a name."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit.pagination import get_page, make_token, read_token

pytestmark = pytest.mark.req("SRV-ALL")


@settings(deadline=None)
@given(items=st.lists(st.integers(), max_size=60), size=st.integers(1, 20))
def test_the_pages_together_are_the_list(items: list[int], size: int) -> None:
    seen: list[int] = []
    token: str | None = None
    for _ in range(len(items) + 1):
        page = get_page(items, token, size)
        assert len(page.items) <= size
        seen += page.items
        token = page.next_page
        if token is None:
            break
    assert (seen, token) == (items, None)


def test_a_list_that_became_shorter_ends() -> None:
    page = get_page([1, 2], make_token(10), 5)
    assert (page.items, page.next_page) == ([], None)


@settings(deadline=None)
@given(token=st.text(min_size=1, max_size=40))
def test_any_token_is_a_position_or_a_mistake(token: str) -> None:
    with contextlib.suppress(InvalidArguments):
        assert read_token(token) >= 0


@pytest.mark.parametrize("token", ["x", "ä", "ZnJvbTotMQ", "ZnJvbTo5OTk5OTk5OTk5OTk5OTk5", "dG86MQ"])
def test_a_token_of_somebody_else_is_refused(token: str) -> None:
    with pytest.raises(InvalidArguments, match="not one this tool gave") as caught:
        get_page([1], token, 1, field="from")
    assert caught.value.field == "from"
