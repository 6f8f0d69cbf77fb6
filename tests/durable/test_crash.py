"""Killed with -9 in the middle, on both databases: what was finished is not repeated, what was begun gets finished."""

from __future__ import annotations

import pytest


@pytest.mark.req("DUR-01", "DUR-02")
def test_after_a_kill_in_step_two_steps_zero_and_one_are_not_repeated_and_two_is(worker) -> None:
    worker.arm("test.in_step_2")
    assert worker.run("start", "steps", "w1") == -9
    assert worker.names() == ["step 0", "step 1", "step 2"]
    assert worker.run("wait", "steps", "w1") == 0, worker.log()
    assert worker.names()[3:] == ["step 2", "step 3", "result"]
    result = worker.effects()[-1]["result"]
    assert result == {"done": [f"result {n}" for n in range(4)], "asked": {"from": "steps"}}


@pytest.mark.req("DUR-02")
def test_a_workflow_survives_a_kill_in_every_step(worker) -> None:
    for number in range(4):
        worker.arm(f"test.in_step_{number}")
    assert [worker.run("start", "steps", "w1") for _ in range(4)] == [-9] * 4
    assert worker.run("start", "steps", "w1") == 0, worker.log()
    assert worker.names() == [
        *("step 0", "step 0", "step 1", "step 1", "step 2", "step 2", "step 3", "step 3"),
        "result",
    ]


@pytest.mark.req("DUR-01")
def test_the_same_id_started_twenty_times_at_once_runs_once(worker) -> None:
    assert worker.run("many", "steps", "w1") == 0, worker.log()
    assert worker.run("many", "steps", "w1") == 0, worker.log()  # also in the next process
    assert [name for name in worker.names() if name.startswith("step")] == [f"step {n}" for n in range(4)]


@pytest.mark.req("DUR-05")
def test_tries_that_failed_before_a_kill_are_counted_after_it(worker) -> None:
    """Two quick retries and three slow ones in all: a crash in the fourth try does not start the count again."""
    worker.arm("test.in_fourth_try")
    assert worker.run("start", "hopeless", "w1") == -9
    assert worker.run("wait", "hopeless", "w1") != 0
    assert "ProviderDown: gone" in worker.log()
    # 1 + 2 + 3 tries, and the one that was killed has to be made again.
    assert worker.names().count("try") == 7


@pytest.mark.req("DUR-05")
def test_a_retry_that_was_killed_goes_on_to_succeed(worker) -> None:
    worker.arm("test.in_try_3")
    assert worker.run("start", "flaky", "w1") == -9
    assert worker.run("wait", "flaky", "w1") == 0, worker.log()
    assert worker.effects()[-1]["result"] == {"tries": 5}


@pytest.mark.req("DUR-02")
def test_steps_that_ran_side_by_side_are_told_apart_after_a_kill(worker) -> None:
    worker.arm("test.in_part_1")
    assert worker.run("start", "together", "w1") == -9
    assert worker.run("wait", "together", "w1") == 0, worker.log()
    assert worker.effects()[-1]["result"] == {"parts": [0, 10, 20, 30, 40]}
    again = worker.names()[5:-1]
    assert "part 1" in again
    assert "part 4" not in again  # it had ended, although it was started last


@pytest.mark.parametrize("moment", ["test.before_wait", "test.after_wait"])
def test_a_signal_reaches_a_workflow_that_was_killed_around_its_wait(worker, moment: str) -> None:
    worker.arm(moment)
    first = "start" if moment == "test.before_wait" else "answer"
    if moment == "test.after_wait":
        worker.run_and_kill("start", "asks", "w1", after_effects=1)
    assert worker.run(first, "asks", "w1") == -9
    assert worker.run("answer" if moment == "test.before_wait" else "wait", "asks", "w1") == 0, worker.log()
    assert worker.effects()[-1]["result"] == {"answer": "yes"}


@pytest.mark.req("DUR-02", "DUR-04")
@pytest.mark.parametrize("kills", [3])
def test_after_kills_at_random_every_message_is_answered_once_and_in_order(worker, kills: int) -> None:
    total = 32
    for _ in range(kills):
        worker.run_and_kill("turns", f"{total}", after_effects=len(worker.effects()) + 5)
    assert worker.run("turns", f"{total}") == 0, worker.log()
    turns: dict[str, list[int]] = {}
    for effect in worker.effects():
        numbers = turns.setdefault(str(effect["chat"]), [])
        number = int(str(effect["text"]))
        if not numbers or numbers[-1] != number:  # the one that was killed may have run again
            numbers.append(number)
    assert turns == {f"chat{chat}": list(range(chat, total, 8)) for chat in range(8)}


def test_the_engine_writes_nothing_to_the_terminal(worker) -> None:
    assert worker.run("start", "steps", "w1") == 0
    assert worker.log() == ""
