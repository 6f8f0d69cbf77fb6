"""When a dead agent comes back, and when it counts as flapping."""

from __future__ import annotations

import pytest

from annabelle.hub.agents.runner import AgentRestartBackoff


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("AGT-06")
def test_the_wait_doubles_with_each_death_and_is_bounded() -> None:
    clock = Clock()
    restarts = AgentRestartBackoff(0.5, clock)
    waits: list[float] = []
    for _ in range(12):
        restarts.died()
        waits.append(restarts.wait_seconds)
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == 30
    clock.now += 100
    assert restarts.wait_seconds == 0


@pytest.mark.req("AGT-06")
def test_a_finished_turn_makes_the_next_wait_short_again() -> None:
    restarts = AgentRestartBackoff(0.5, Clock())
    for _ in range(5):
        restarts.died()
    restarts.worked()
    assert restarts.wait_seconds == 0
    restarts.died()
    assert restarts.wait_seconds == 0.5


@pytest.mark.req("AGT-06")
def test_more_than_three_restarts_in_ten_minutes_are_flapping_until_they_are_past() -> None:
    clock = Clock()
    restarts = AgentRestartBackoff(0.5, clock)
    for _ in range(3):
        restarts.restarted()
    assert not restarts.flapping
    restarts.restarted()
    assert restarts.flapping
    assert restarts.count == 4
    clock.now += 601
    assert not restarts.flapping
    assert restarts.count == 4
