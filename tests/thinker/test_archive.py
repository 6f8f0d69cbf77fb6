"""The archive: conversations that rest are stored whole, once, with a summary, and are found again."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from annabelle.core.errors import ProviderDown
from annabelle.core.messages import now
from annabelle.core.secrets.forget_mask import ForgetMatcher, mask_value
from annabelle.thinker.session import archiver, file_store as session_files
from annabelle.thinker.session.archive_search import NAME
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.records import Compaction
from annabelle.thinker.session.session_store import ConversationEnd, SessionStore, SessionView
from support.timing import seconds
from thinker.fakes import ListedModel
from thinker.talks import THREAD, MakeStore, Talk, every_few_bytes, make_store, turn
from thinker.thinkers import brief

__all__ = ["make_store"]

MODEL = ListedModel("They planned a trip to Evora. The hotel is still open.")


def ago(**span: float) -> datetime:
    return now() - timedelta(**span)


async def viewed(talk: Talk, text: str = "Hello?", **more: object) -> SessionView:
    return await talk.sessions.load(brief(text, thread_id=THREAD, **more))


async def ended(store: SessionStore, number: int, summary: str, at: datetime, said: str = "") -> None:
    """A conversation of one turn, archived."""
    await store.append(THREAD, turn(number, said=said, at=at))
    assert await store.archive(THREAD, ConversationEnd(f"msg_{number}", "session_timeout", summary)) is not None


@pytest.mark.req("SES-03", "SES-04", "SES-07")
async def test_a_message_after_half_an_hour_finds_a_fresh_history_and_a_summary(
    make_store: MakeStore, tmp_path: Path
) -> None:
    talk = Talk(make_store(), ListedModel("They planned a trip. The hotel is open."), tmp_path)
    await talk.store.append(THREAD, turn(0, said="Plan a trip", at=ago(minutes=45)))
    await talk.store.append(THREAD, turn(1, at=ago(minutes=31)))
    view = await viewed(talk)
    assert (view.turns, view.compaction) == ([], "")
    assert [text.partition(": ")[2] for text in view.summaries] == ["They planned a trip. The hotel is open."]
    assert [tool.spec.name for tool in view.local_tools] == [NAME]
    (archive,) = await make_store().archives(THREAD)
    assert (archive.reason, archive.message_count, archive.user_id) == ("session_timeout", 4, "owner")
    assert (archive.input_tokens, archive.output_tokens) == (20, 4)
    assert timedelta(minutes=13) < archive.ended_at - archive.started_at < timedelta(minutes=15)
    stored = (await make_store().archived_turns(THREAD))[archive.id]
    assert [record["user"] for record in stored] == ["Plan a trip", "question 1"]


@pytest.mark.req("SES-03")
async def test_within_half_an_hour_the_conversation_goes_on(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), MODEL, tmp_path)
    await talk.store.append(THREAD, turn(0, at=ago(minutes=29)))
    view = await viewed(talk)
    assert [one.message_id for one in view.turns] == ["msg_0"]
    assert (view.summaries, view.local_tools) == ((), ())


@pytest.mark.req("SES-03")
async def test_a_conversation_is_not_idle_while_its_next_turn_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(FileSessionStore(tmp_path / "sessions", "tess"), MODEL, tmp_path)
    await talk.store.append(THREAD, turn(0, at=ago(minutes=29)))
    await viewed(talk)
    for later, archived in ((29, 0), (31, 1)):
        monkeypatch.setattr(archiver, "now", lambda later=later: now() + timedelta(minutes=later))
        await talk.sessions._archivist.scan()  # pyright: ignore[reportPrivateUsage]
        assert len(await talk.store.archives(THREAD)) == archived


@pytest.mark.req("SES-03")
@pytest.mark.parametrize("minutes", [1e300, float("inf")])
async def test_who_waits_longer_than_any_date_reaches_never_archives(tmp_path: Path, minutes: float) -> None:
    talk = Talk(FileSessionStore(tmp_path, "annabelle"), MODEL, tmp_path, agent_session_timeout=minutes)
    await talk.store.append(THREAD, turn(0, at=ago(days=365)))
    assert [one.message_id for one in (await viewed(talk)).turns] == ["msg_0"]


@pytest.mark.req("SES-03", "THK-02", "LLM-05")
async def test_what_rests_is_archived_without_a_message_once_whoever_looks(
    make_store: MakeStore, tmp_path: Path
) -> None:
    model = ListedModel("Summed up.")
    talk = Talk(make_store(), model, tmp_path)
    await talk.store.append(THREAD, turn(0, at=ago(hours=2)))
    await talk.store.append("thr_new", turn(1))
    keeper = talk.sessions._archivist  # pyright: ignore[reportPrivateUsage]
    await asyncio.gather(keeper.scan(), keeper.scan(), viewed(talk))
    await keeper.scan()
    assert [one.summary for one in await make_store().archives(THREAD)] == ["Summed up."]
    assert await make_store().archives("thr_new") == []
    [request] = model.requests
    assert (request.purpose, request.tools) == ("summary", []), "the only call nobody asked for: no tool, no turn"


@pytest.mark.req("SES-03")
async def test_two_processes_that_archive_at_once_store_it_once(make_store: MakeStore) -> None:
    store = make_store()
    await store.append(THREAD, turn(0))
    ending = ConversationEnd("msg_0", "session_timeout", "Once.")
    done = await asyncio.gather(*(store.archive(THREAD, ending) for _ in range(4)))
    assert sum(one is not None for one in done) == 1
    assert len(await make_store().archives(THREAD)) == 1
    assert await store.archive(THREAD, ending) is None


@pytest.mark.req("SES-03")
async def test_a_conversation_that_goes_on_meanwhile_is_not_archived(make_store: MakeStore) -> None:
    store = make_store()
    await store.append(THREAD, turn(0))
    await store.append(THREAD, turn(1))
    assert await store.archive(THREAD, ConversationEnd("msg_0", "session_timeout", "Too late.")) is None
    assert len((await store.session(THREAD)).turns) == 2


@pytest.mark.req("SES-03")
async def test_a_model_that_fails_leaves_what_the_user_wrote_as_the_summary(tmp_path: Path) -> None:
    talk = Talk(FileSessionStore(tmp_path / "sessions", "tess"), ListedModel(ProviderDown("It is down.")), tmp_path)
    for number, said in enumerate(("Book the hotel Miramar", "and a car", "token=abcdefgh12345678 is my key")):
        await talk.store.append(THREAD, turn(number, said=said, at=ago(hours=1)))
    (summary,) = (await viewed(talk)).summaries
    assert "Book the hotel Miramar / and a car" in summary
    assert "abcdefgh12345678" not in summary


@pytest.mark.req("SES-03")
async def test_a_model_that_fails_loses_nothing_of_what_was_summed_up_before(
    make_store: MakeStore, tmp_path: Path
) -> None:
    talk = Talk(make_store(), ListedModel(ProviderDown("It is down.")), tmp_path)
    for number, said in enumerate(("Book the hotel Miramar", "and a car")):
        await talk.store.append(THREAD, turn(number, said=said, at=ago(hours=1)))
    assert await talk.store.compact(THREAD, Compaction(message_id="msg_0", summary="A hotel was booked.", turns=1))
    (summary,) = (await viewed(talk)).summaries
    assert "A hotel was booked." in summary
    assert "and a car" in summary


@pytest.mark.req("SES-03")
async def test_a_slow_model_does_not_keep_a_message_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiver, "WAITED_FOR_SECONDS", 0.05)
    asked = asyncio.Event()

    async def never() -> None:
        asked.set()
        await asyncio.Event().wait()

    talk = Talk(FileSessionStore(tmp_path / "sessions", "tess"), ListedModel(lambda _request: never()), tmp_path)
    await talk.store.append(THREAD, turn(0, said="Book a hotel", at=ago(hours=1)))
    scanning = asyncio.create_task(talk.sessions._archivist.scan())  # pyright: ignore[reportPrivateUsage]
    await asyncio.wait_for(asked.wait(), seconds(10))
    view = await asyncio.wait_for(viewed(talk), seconds(10))
    assert [text.partition(": ")[2] for text in view.summaries] == ["The user wrote: Book a hotel"]
    assert view.turns == []
    scanning.cancel()


@pytest.mark.req("SES-03")
async def test_a_clock_that_went_back_makes_nothing_old(tmp_path: Path) -> None:
    talk = Talk(FileSessionStore(tmp_path / "sessions", "tess"), MODEL, tmp_path)
    await talk.store.append(THREAD, turn(0, at=now() + timedelta(hours=3)))
    await talk.store.append(THREAD, turn(1, at=ago(hours=5)))
    view = await viewed(talk)
    assert len(view.turns) == 2
    archive = await talk.store.archive(THREAD, ConversationEnd("msg_1", "manual", "s"))
    assert archive is not None
    assert archive.started_at < archive.ended_at


@pytest.mark.req("SES-07")
async def test_tasks_are_not_archived_and_can_not_search(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), MODEL, tmp_path)
    await ended(talk.store, 0, "They talked.", ago(hours=2))
    await talk.store.append(THREAD, turn(1, at=ago(hours=1), task=True))
    view = await viewed(talk, conversational=False)
    assert [one.message_id for one in view.turns] == ["msg_1"]
    assert (view.summaries, view.local_tools) == ((), ())
    await talk.sessions._archivist.scan()  # pyright: ignore[reportPrivateUsage]
    assert len(await talk.store.archives(THREAD)) == 1


@pytest.mark.req("SES-07", "AGE-09")
async def test_a_complete_feed_is_archived_at_once_for_that_reason(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), ListedModel("The feed of a morning."), tmp_path)
    await talk.sessions.append(THREAD, turn(0))
    talk.sessions.answered(THREAD, "feed_complete")
    await talk.settled()
    (archive,) = await make_store().archives(THREAD)
    assert (archive.reason, archive.message_count) == ("feed_complete", 2)
    assert (await make_store().session(THREAD)).turns == []


@pytest.mark.req("SES-07")
async def test_a_message_without_an_answer_is_one_message(make_store: MakeStore) -> None:
    store = make_store()
    await store.append(THREAD, turn(0))
    await store.append(THREAD, turn(1).model_copy(update={"assistant": ""}))
    archive = await store.archive(THREAD, ConversationEnd("msg_1", "manual", "One was not answered."))
    assert archive is not None
    assert archive.message_count == 3


@pytest.mark.req("SES-07")
async def test_a_cleared_conversation_is_archived_first(make_store: MakeStore, tmp_path: Path) -> None:
    talk = Talk(make_store(), ListedModel("They talked."), tmp_path)
    await talk.sessions.clear(THREAD)
    await talk.say(turn(0), turn(1))
    await talk.sessions.clear(THREAD)
    assert (await make_store().session(THREAD)).turns == []
    (archive,) = await make_store().archives(THREAD)
    assert (archive.reason, archive.summary) == ("manual", "They talked.")


@pytest.mark.req("SES-03")
async def test_a_turn_replayed_after_its_conversation_was_archived_is_not_written_again(make_store: MakeStore) -> None:
    store = make_store()
    await ended(store, 0, "Over.", now())
    await make_store().append(THREAD, turn(0))
    assert (await make_store().session(THREAD)).turns == []
    await store.append(THREAD, turn(1))
    assert len((await make_store().session(THREAD)).turns) == 1


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.req("SES-03")
@pytest.mark.incident("I-21")
@pytest.mark.parametrize("moment", ["thinker.archived", "thinker.started_afresh"])
async def test_killed_in_the_middle_it_is_finished_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def die(name: str) -> None:
        if name == moment:
            raise Killed

    talk = Talk(FileSessionStore(tmp_path / "sessions", "tess"), ListedModel("Summed up."), tmp_path)
    await talk.say(*(turn(number, said="x" * 4_000) for number in range(9)))
    store = cast("FileSessionStore", talk.store)
    assert store.older_path(THREAD).exists()
    with monkeypatch.context() as patch:
        patch.setattr(session_files, "failpoint", die)
        with pytest.raises(Killed):
            await store.archive(THREAD, ConversationEnd("msg_8", "session_timeout", "Summed up."))
    again = FileSessionStore(tmp_path / "sessions", "tess")
    session = await again.session(THREAD)
    assert (list(session.turns), session.compaction) == ([], None)
    assert not again.older_path(THREAD).exists()
    await again.append(THREAD, turn(8))
    await again.append(THREAD, turn(9))
    assert [one.message_id for one in (await again.session(THREAD)).turns] == ["msg_9"]
    assert await again.archive(THREAD, ConversationEnd("msg_9", "session_timeout", "More.")) is not None
    turns = (await again.archived_turns(THREAD)).values()
    assert [[one["message_id"] for one in some] for some in turns] == [[f"msg_{n}" for n in range(9)], ["msg_9"]]


@pytest.mark.req("SES-03")
@pytest.mark.incident("I-21")
async def test_an_archive_cut_anywhere_in_its_last_line_is_written_again(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path, "tess")
    await ended(store, 0, "First.", ago(hours=2))
    await store.append(THREAD, turn(1))
    session = store.path(THREAD).read_bytes()
    await store.archive(THREAD, ConversationEnd("msg_1", "manual", "Second."))
    path = tmp_path / "archive" / f"{THREAD}.jsonl"
    blob = path.read_bytes()
    for cut in every_few_bytes(blob.index(b"\n") + 1, len(blob)):
        path.write_bytes(blob[:cut])
        store.path(THREAD).write_bytes(session)
        again = FileSessionStore(tmp_path, "tess")
        await again.archive(THREAD, ConversationEnd("msg_1", "manual", "Second."))
        found = await FileSessionStore(tmp_path, "tess").archives(THREAD)
        assert [one.summary for one in found] == ["First.", "Second."]
        assert all(json.loads(line) for line in path.read_bytes().splitlines())


async def test_a_side_file_without_its_session_is_not_thrown_away(tmp_path: Path) -> None:
    talk = Talk(FileSessionStore(tmp_path / "sessions", "tess"), ListedModel("Summed up."), tmp_path)
    await talk.say(*(turn(number, said="x" * 4_000) for number in range(8)))
    cast("FileSessionStore", talk.store).path(THREAD).unlink()
    again = FileSessionStore(tmp_path / "sessions", "tess")
    await again.append(THREAD, turn(0))
    await again.append(THREAD, turn(8))
    archive = await again.archive(THREAD, ConversationEnd("msg_8", "manual", "s"))
    assert archive is not None
    assert [one["message_id"] for one in archive.turns] == ["msg_0", "msg_1", "msg_2", "msg_8"]


@pytest.mark.req("TRU-09")
@pytest.mark.parametrize("word", ["session_timeout", "archive", "2026", "msg_0", "owner", "turn", "10"])
async def test_an_archive_can_be_read_whatever_word_was_forgotten(tmp_path: Path, word: str) -> None:
    store = FileSessionStore(tmp_path, "tess")
    await ended(store, 0, "They talked.", datetime(2026, 5, 3, tzinfo=UTC), said="A turn of 2026 by the owner")
    path = tmp_path / "archive" / f"{THREAD}.jsonl"
    record = mask_value(ForgetMatcher((word,)), json.loads(path.read_text()))
    path.write_text(json.dumps(record) + "\n")
    assert [one.summary for one in await FileSessionStore(tmp_path, "tess").archives(THREAD)] == ["They talked."]
