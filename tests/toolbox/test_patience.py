"""When a server is restarted, and when no more."""

import pytest

from annabelle.toolbox.supervisor.restart_backoff import RestartBackoff


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.incident("I-18")
def test_waits_double_up_to_the_cap_and_then_it_is_over() -> None:
    clock = Clock()
    patience = RestartBackoff(base=1, cap=5, limit=5, window=600, clock=clock)
    assert [patience.next_wait() for _ in range(7)] == [1, 2, 4, 5, 5, None, None]


def test_restarts_long_ago_do_not_count() -> None:
    clock = Clock()
    patience = RestartBackoff(base=1, cap=5, limit=2, window=600, clock=clock)
    assert [patience.next_wait(), patience.next_wait(), patience.next_wait()] == [1, 2, None]
    clock.now += 601
    assert patience.next_wait() == 1


def test_a_calm_time_makes_the_next_wait_short_again() -> None:
    clock = Clock()
    patience = RestartBackoff(base=1, cap=5, limit=50, window=600, clock=clock)
    for _ in range(4):
        patience.next_wait()
    clock.now += 60
    assert patience.next_wait() == 1


def test_a_reset_begins_anew() -> None:
    patience = RestartBackoff(base=1, cap=5, limit=1, window=600, clock=Clock())
    assert [patience.next_wait(), patience.next_wait()] == [1, None]
    patience.reset()
    assert patience.next_wait() == 1
