"""The circuit breaker: it opens after net errors, and lets one call at a time find out when it may close."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from annabelle.core.errors import ProviderDown, ProviderRateLimited, ProviderRefused
from annabelle.core.settings import Settings
from annabelle.llm.failover import BreakerPass, CircuitBreaker, ProviderHealth, ProviderHealthMonitor
from annabelle.llm.providers import PROVIDERS

COOLDOWN = 60.0


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def fail(breaker: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        passed = breaker.enter()
        assert passed is not None
        passed.failed()


def succeed(breaker: CircuitBreaker) -> None:
    passed = breaker.enter()
    assert passed is not None
    passed.succeeded()


@pytest.mark.req("CST-06")
def test_five_net_errors_open_it_and_a_success_takes_one_away_never_all() -> None:
    breaker = CircuitBreaker(Settings().llm_breaker_errors, COOLDOWN, Clock())
    fail(breaker, 4)
    succeed(breaker)
    fail(breaker, 1)
    assert (breaker.errors, breaker.state) == (4, "closed")
    fail(breaker, 1)
    assert breaker.state == "open"
    assert breaker.enter() is None


@pytest.mark.req("CST-06")
def test_after_the_cool_down_exactly_one_call_tries_and_its_failure_opens_it_again() -> None:
    clock = Clock()
    breaker = CircuitBreaker(5, COOLDOWN, clock)
    fail(breaker, 5)
    clock.now += COOLDOWN - 0.1
    assert breaker.enter() is None
    clock.now += 0.1
    probe = breaker.enter()
    assert probe is not None
    assert (breaker.state, breaker.enter()) == ("probing", None)
    probe.failed()
    assert (breaker.enter(), breaker.wait_seconds) == (None, COOLDOWN)
    clock.now += COOLDOWN
    second = breaker.enter()
    assert second is not None
    second.succeeded()
    assert (breaker.state, breaker.errors) == ("closed", 4)


@pytest.mark.req("CST-06")
def test_a_probe_that_was_cancelled_lets_the_next_call_try() -> None:
    clock = Clock()
    breaker = CircuitBreaker(1, COOLDOWN, clock)
    fail(breaker, 1)
    clock.now += COOLDOWN
    first = breaker.enter()
    assert first is not None
    first.abandoned()
    assert breaker.enter() is not None


@pytest.mark.req("CST-06", "LLM-06")
def test_refusals_and_limits_degrade_a_provider_and_never_open_its_breaker() -> None:
    told: list[ProviderHealth] = []
    health = ProviderHealthMonitor(2, COOLDOWN, told.append, Clock())
    groq = PROVIDERS["groq"]
    for error in (ProviderRateLimited("Groq is limiting requests."), ProviderRefused("no")) * 5:
        guard = health.enter(groq)
        assert guard is not None
        guard.failed(error)
    assert [(one.provider, one.state, one.errors) for one in health.report()] == [("groq", "degraded", 0)]
    guard = health.enter(groq)
    assert guard is not None
    guard.succeeded()
    assert [one.state for one in told] == ["degraded", "ok"]


@pytest.mark.req("LLM-06")
def test_the_health_of_a_provider_tells_its_state_its_last_error_and_the_next_try() -> None:
    clock = Clock()
    health = ProviderHealthMonitor(2, COOLDOWN, clock=clock)
    groq = PROVIDERS["groq"]
    for _ in range(2):
        guard = health.enter(groq)
        assert guard is not None
        guard.failed(ProviderDown("Groq has a problem of its own (status 503)."))
    clock.now += 20
    (now,) = health.report()
    assert (now.state, now.errors, now.next_try_seconds) == ("open", 2, 40.0)
    assert now.last_error == "Groq has a problem of its own (status 503)."
    refusal = health.refusal(groq)
    assert refusal is not None
    assert "next try in 40 s" in refusal.message
    clock.now += 40
    assert health.enter(groq) is not None
    assert health.report()[0].state == "probing"


@dataclass
class _Model:
    """What the breaker should be, in the plainest words."""

    limit: int
    errors: int = 0
    opened_at: float | None = None
    probe: BreakerPass | None = None
    out: list[BreakerPass] = field(default_factory=list[BreakerPass])


class BreakerMachine(RuleBasedStateMachine):
    """Any order of calls, ends and waits: never two probes, never open with fewer errors than the limit."""

    @initialize(limit=st.integers(1, 4))
    def start(self, limit: int) -> None:
        self.clock = Clock()
        self.breaker, self.model = CircuitBreaker(limit, COOLDOWN, self.clock), _Model(limit)

    @rule(seconds=st.sampled_from([0.0, 1.0, COOLDOWN / 2, COOLDOWN, 10 * COOLDOWN]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def enter(self) -> None:
        model, passed = self.model, self.breaker.enter()
        if model.opened_at is None:
            assert passed is not None
            model.out.append(passed)
        elif model.probe is None and self.clock.now - model.opened_at >= COOLDOWN:
            assert passed is not None
            model.probe = passed
        else:
            assert passed is None

    @precondition(lambda self: self.model.out)
    @rule(end=st.sampled_from(["succeeded", "failed", "abandoned"]), data=st.data())
    def end_call(self, end: str, data: st.DataObject) -> None:
        model = self.model
        passed = model.out.pop(data.draw(st.integers(0, len(model.out) - 1)))
        getattr(passed, end)()
        if model.opened_at is not None:
            return
        model.errors = max(0, model.errors + {"succeeded": -1, "failed": 1, "abandoned": 0}[end])
        if model.errors >= model.limit and end == "failed":
            model.opened_at = self.clock.now

    @precondition(lambda self: self.model.probe is not None)
    @rule(end=st.sampled_from(["succeeded", "failed", "abandoned"]), again=st.booleans())
    def end_probe(self, end: str, again: bool) -> None:
        model = self.model
        assert model.probe is not None
        for _ in range(2 if again else 1):  # saying it twice is saying it once
            getattr(model.probe, end)()
        model.probe = None
        if end == "succeeded":
            model.opened_at, model.errors = None, max(0, model.errors - 1)
        elif end == "failed":
            model.opened_at = self.clock.now

    @invariant()
    def agrees(self) -> None:
        model = self.model
        state = "closed" if model.opened_at is None else "open" if model.probe is None else "probing"
        assert (self.breaker.state, self.breaker.errors) == (state, model.errors)


TestBreakerMachine = pytest.mark.req("CST-06")(BreakerMachine.TestCase)
TestBreakerMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
