"""Retry classes, and errors that keep their class over a crash."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.core.backoff import RetryPolicy
from annabelle.core.errors import (
    AnnabelleError,
    InvalidArguments,
    ProviderDown,
    ProviderFailed,
    ProviderRateLimited,
    ProviderRefused,
    TooManyRequests,
    Unavailable,
    UnknownTool,
)
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.durable.steps import failure_outcome, rebuild_error, success_outcome, unwrap_outcome


def waits(error: AnnabelleError, policy: RetryPolicy) -> list[float]:
    found: list[float] = []
    while (wait := policy.wait_seconds(error, len(found) + 1)) is not None:
        found.append(wait)
    return found


@pytest.mark.req("DUR-05")
@pytest.mark.parametrize(
    ("error", "slow"), [(ProviderRateLimited("x"), 5), (ProviderDown("x"), 3), (ProviderFailed("x"), 2)]
)
def test_two_quick_retries_then_slow_ones_as_the_class_allows(error: AnnabelleError, slow: int) -> None:
    found = waits(error, RetryPolicy())
    assert found[:2] == [1.5, 1.5]
    assert len(found) == 2 + slow
    for number, wait in enumerate(found[2:]):
        assert 8 * 2**number <= wait <= 12 * 2**number


@pytest.mark.req("DUR-05")
def test_what_no_retry_helps_is_not_tried_again() -> None:
    assert waits(ProviderRefused("wrong key"), RetryPolicy()) == []
    assert waits(InvalidArguments("no"), RetryPolicy()) == []


@pytest.mark.req("DUR-05")
@given(st.floats(0.01, 1000), st.floats(0.01, 1000))
def test_no_wait_is_longer_than_the_cap(base: float, cap: float) -> None:
    policy = RetryPolicy(base_seconds=base, cap_seconds=cap, immediate_seconds=0)
    assert max(waits(ProviderRateLimited("x"), policy)) <= cap


@pytest.mark.req("DUR-05", "CST-06")
def test_a_try_that_would_be_refused_is_waited_for_also_after_a_crash() -> None:
    error = ProviderDown("It is left alone for now.")
    error.next_try = 60.0
    with pytest.raises(ProviderDown) as caught:
        unwrap_outcome(failure_outcome(error))
    assert waits(caught.value, RetryPolicy()) == [60.0] * 5
    assert max(waits(ProviderDown("x"), RetryPolicy())) < 60


@pytest.mark.req("DUR-05")
def test_waits_are_spread_so_that_turns_do_not_come_back_together() -> None:
    assert len({waits(ProviderDown("x"), RetryPolicy())[2] for _ in range(20)}) > 1


@pytest.mark.req("DUR-05")
def test_the_settings_decide(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    assert RetryPolicy.from_settings(load_settings(home)) == RetryPolicy(10, 300, 1.5)
    monkeypatch.setenv("RETRY_BASE_SECONDS", "1")
    monkeypatch.setenv("RETRY_CAP_SECONDS", "2")
    monkeypatch.setenv("RETRY_IMMEDIATE_SECONDS", "0.5")
    assert RetryPolicy.from_settings(load_settings(home)) == RetryPolicy(1, 2, 0.5)


def all_errors(kind: type[AnnabelleError] = AnnabelleError) -> list[type[AnnabelleError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in all_errors(child))]


class OfOneRoom(Unavailable):
    """A room's own error that keeps its parent's code and is made in its own way."""

    def __init__(self) -> None:
        super().__init__("It is away.")


def test_a_room_s_own_error_does_not_stand_for_its_parent() -> None:
    with pytest.raises(Unavailable) as caught:
        unwrap_outcome(failure_outcome(OfOneRoom()))
    assert (type(caught.value), caught.value.message) == (Unavailable, "It is away.")


@pytest.mark.parametrize("kind", [kind for kind in all_errors() if kind.__module__ == AnnabelleError.__module__])
def test_every_error_comes_back_as_what_it_was(kind: type[AnnabelleError]) -> None:
    error = kind("it broke", hint="mend it") if kind is TooManyRequests else kind("it broke", hint="mend it", field="x")
    with pytest.raises(AnnabelleError) as caught:
        unwrap_outcome(failure_outcome(error))
    assert isinstance(caught.value, kind)
    assert caught.value.body() == error.body()
    assert caught.value.retry == error.retry or kind.code == "provider_failed"


def test_a_code_of_another_version_is_still_an_error() -> None:
    body = UnknownTool("x").body().model_copy(update={"code": "not_invented_yet"})
    assert type(rebuild_error(body)) is AnnabelleError


def test_a_value_comes_back_also_when_it_is_nothing() -> None:
    assert unwrap_outcome(success_outcome(None)) is None
