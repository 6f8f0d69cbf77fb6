"""One call id, one effect."""

import asyncio

import pytest

from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    OutcomeUnknown,
    ServerDown,
    StorageTrouble,
    ToolTimeout,
    TurnCancelled,
)
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.toolbox.call_hooks import JournalledCall, arguments_hash
from annabelle.toolbox.middleware.record import CallRecorder, RecordCall
from support.timing import seconds
from support.toolbox import MemoryJournal, eventually


def spec(*, repeatable: bool) -> ToolSpec:
    return ToolSpec(
        name="t_x",
        server="t",
        original_name="x",
        description="",
        input_schema={},
        annotations=ToolAnnotations(idempotent=repeatable),
    )


class Effect:
    """Counts its calls; waits until let go, or fails as told."""

    def __init__(self, error: AnnabelleError | None = None) -> None:
        self.count = 0
        self.go = asyncio.Event()
        self.go.set()
        self.error = error

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.count += 1
        await asyncio.wait_for(self.go.wait(), seconds(20))
        if self.error is not None:
            raise self.error
        return ToolResult(text=f"effect {self.count}")


def context(call_id: str | None = "m:1:0") -> CallContext:
    return CallContext(caller="agent", agent_id="a", user_id="owner", call_id=call_id)


@pytest.fixture
def recorder(journal: MemoryJournal) -> CallRecorder:
    return CallRecorder(journal)


@pytest.mark.req("DUR-03")
async def test_a_repeated_call_replays_the_first_result(recorder: CallRecorder, journal: MemoryJournal) -> None:
    effect = Effect()
    first = await RecordCall(effect, recorder).call(spec(repeatable=False), {"a": 1}, context())
    again = await RecordCall(effect, CallRecorder(journal)).call(spec(repeatable=False), {"a": 1}, context())
    assert (first.text, again.text, effect.count) == ("effect 1", "effect 1", 1)
    assert (first.replayed, again.replayed) == (False, True)


async def test_a_call_without_an_id_is_made_each_time(recorder: CallRecorder, journal: MemoryJournal) -> None:
    effect = Effect()
    for _ in range(2):
        await RecordCall(effect, recorder).call(spec(repeatable=False), {}, context(None))
    assert effect.count == 2
    assert journal.rows == {}


async def test_a_repeat_while_it_runs_joins_it(recorder: CallRecorder) -> None:
    effect = Effect()
    effect.go.clear()
    door = RecordCall(effect, recorder)
    calls = [asyncio.create_task(door.call(spec(repeatable=False), {"a": 1}, context())) for _ in range(5)]
    await eventually(lambda: effect.count == 1)
    effect.go.set()
    assert {result.text for result in await asyncio.gather(*calls)} == {"effect 1"}
    assert effect.count == 1


@pytest.mark.req("DUR-03")
async def test_a_caller_that_goes_away_does_not_take_the_call_along(
    recorder: CallRecorder, journal: MemoryJournal
) -> None:
    effect = Effect()
    effect.go.clear()
    door = RecordCall(effect, recorder)
    caller = asyncio.create_task(door.call(spec(repeatable=False), {}, context()))
    await eventually(lambda: effect.count == 1)
    caller.cancel()
    await asyncio.wait([caller])
    effect.go.set()
    await eventually(lambda: journal.state("m:1:0") == "finished")
    assert (await door.call(spec(repeatable=False), {}, context())).text == "effect 1"


async def test_another_call_under_the_same_id_is_refused(recorder: CallRecorder) -> None:
    effect = Effect()
    effect.go.clear()
    door = RecordCall(effect, recorder)
    running = asyncio.create_task(door.call(spec(repeatable=False), {"a": 1}, context()))
    await eventually(lambda: effect.count == 1)
    with pytest.raises(Conflict):
        await door.call(spec(repeatable=False), {"a": 2}, context())
    effect.go.set()
    await running
    with pytest.raises(Conflict):
        await door.call(spec(repeatable=False), {"a": 2}, context())


async def begun_before_a_crash(journal: MemoryJournal) -> None:
    await journal.begin(JournalledCall("m:1:0", "t_x", arguments_hash("t_x", {}), context()))


@pytest.mark.req("DUR-03")
async def test_a_call_that_was_under_way_in_a_crash_is_unknown(recorder: CallRecorder, journal: MemoryJournal) -> None:
    await begun_before_a_crash(journal)
    effect = Effect()
    with pytest.raises(OutcomeUnknown):
        await RecordCall(effect, recorder).call(spec(repeatable=False), {}, context())
    assert (effect.count, journal.state("m:1:0")) == (0, "unknown")


@pytest.mark.req("DUR-03")
async def test_a_repeatable_call_that_was_under_way_in_a_crash_is_made_again(
    recorder: CallRecorder, journal: MemoryJournal
) -> None:
    await begun_before_a_crash(journal)
    effect = Effect()
    assert (await RecordCall(effect, recorder).call(spec(repeatable=True), {}, context())).text == "effect 1"
    assert journal.state("m:1:0") == "finished"


@pytest.mark.parametrize("error", [ServerDown("down"), ToolTimeout("late", hint="look")])
async def test_what_was_raised_is_raised_again(
    recorder: CallRecorder, journal: MemoryJournal, error: AnnabelleError
) -> None:
    effect = Effect(error)
    for _ in range(2):
        with pytest.raises(type(error), match=error.message) as caught:
            await RecordCall(effect, recorder).call(spec(repeatable=False), {}, context())
        assert caught.value.hint == error.hint
    assert effect.count == 1


async def test_an_unknown_outcome_stays_unknown(recorder: CallRecorder, journal: MemoryJournal) -> None:
    effect = Effect(OutcomeUnknown("died"))
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            await RecordCall(effect, recorder).call(spec(repeatable=False), {}, context())
    assert (effect.count, journal.state("m:1:0")) == (1, "unknown")


@pytest.mark.req("DUR-03")
@pytest.mark.parametrize(
    ("repeatable", "error", "state"), [(False, OutcomeUnknown, "unknown"), (True, TurnCancelled, "finished")]
)
async def test_a_call_can_be_cancelled_by_its_id(
    recorder: CallRecorder, journal: MemoryJournal, repeatable: bool, error: type[AnnabelleError], state: str
) -> None:
    effect = Effect()
    effect.go.clear()
    running = asyncio.create_task(RecordCall(effect, recorder).call(spec(repeatable=repeatable), {}, context()))
    await eventually(lambda: effect.count == 1)
    assert await recorder.cancel("m:1:0")
    with pytest.raises(error):
        await running
    assert journal.state("m:1:0") == state
    assert not await recorder.cancel("m:1:0")


@pytest.mark.req("HUB-05")
async def test_a_stop_waits_for_calls_and_writes_down_those_it_ends(
    recorder: CallRecorder, journal: MemoryJournal
) -> None:
    effect = Effect()
    effect.go.clear()
    running = asyncio.create_task(RecordCall(effect, recorder).call(spec(repeatable=False), {}, context()))
    await eventually(lambda: effect.count == 1)
    await recorder.drain(0.05)
    with pytest.raises(OutcomeUnknown):
        await running
    assert journal.state("m:1:0") == "unknown"


def test_the_fingerprint_of_arguments_does_not_depend_on_their_order() -> None:
    assert arguments_hash("t", {"a": 1, "b": 2}) == arguments_hash("t", {"b": 2, "a": 1})
    assert arguments_hash("t", {"a": 1}) != arguments_hash("u", {"a": 1})
    assert arguments_hash("t", {"a": 1}) != arguments_hash("t", {"a": "1"})


class FullJournal(MemoryJournal):
    """Writes down that a call began, and then has no room for how it ended."""

    async def finish(self, call_id: str, result: ToolResult) -> None:
        raise StorageTrouble("The disk is full.")

    async def mark_unknown(self, call_id: str) -> None:
        raise StorageTrouble("The disk is full.")


@pytest.mark.req("DUR-03")
async def test_a_disk_that_fills_up_under_a_call_does_not_make_it_a_failed_one() -> None:
    recorder, effect = CallRecorder(FullJournal()), Effect()
    once = RecordCall(effect, recorder)
    assert (await once.call(spec(repeatable=False), {}, context())).text == "effect 1"
    with pytest.raises(OutcomeUnknown):
        await once.call(spec(repeatable=False), {}, context())
    assert effect.count == 1
    lost = RecordCall(Effect(OutcomeUnknown("Its server ended.")), recorder)
    with pytest.raises(OutcomeUnknown):
        await lost.call(spec(repeatable=False), {}, context("m:1:1"))
