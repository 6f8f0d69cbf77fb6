"""Turns that were deleted leave the session, its summaries and its archives, in files and in tables (CMD-04)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.records import Compaction
from annabelle.thinker.session.session_store import ConversationEnd, SessionStore
from thinker.fakes import ListedModel
from thinker.talks import THREAD, MakeStore, Talk, make_store, turn

__all__ = ["make_store"]
pytestmark = pytest.mark.req("CMD-04")


async def filled(make_store: MakeStore, turns: int) -> SessionStore:
    store = make_store()
    for number in range(turns):
        await store.append(THREAD, turn(number))
    return store


async def open_ids(store: SessionStore) -> list[str]:
    return [one.message_id for one in await store.open_turns(THREAD)]


async def test_the_named_turns_are_gone_and_the_others_stay(make_store: MakeStore) -> None:
    store = await filled(make_store, 4)
    await store.remove_turns(THREAD, frozenset({"msg_1", "msg_2", "msg_unknown"}))
    for each in (store, make_store()):
        assert await open_ids(each) == ["msg_0", "msg_3"]
        assert [one.message_id for one in (await each.session(THREAD)).turns] == ["msg_0", "msg_3"]
    await store.append(THREAD, turn(4))
    assert await open_ids(make_store()) == ["msg_0", "msg_3", "msg_4"]


async def test_a_summary_that_tells_of_them_goes_and_its_other_turns_come_back(make_store: MakeStore) -> None:
    store = await filled(make_store, 4)
    await store.compact(THREAD, Compaction(message_id="msg_1", summary="They said question 0 and 1.", turns=2))
    await store.remove_turns(THREAD, frozenset({"msg_1"}))
    for each in (store, make_store()):
        assert (await each.session(THREAD)).compaction is None
        assert await open_ids(each) == ["msg_0", "msg_2", "msg_3"]


async def test_a_summary_of_other_turns_stays(make_store: MakeStore) -> None:
    store = await filled(make_store, 4)
    await store.compact(THREAD, Compaction(message_id="msg_1", summary="They greeted.", turns=2))
    await store.remove_turns(THREAD, frozenset({"msg_3"}))
    session = await make_store().session(THREAD)
    assert (session.compaction and session.compaction.summary) == "They greeted."
    assert await open_ids(make_store()) == ["msg_2"]


@pytest.mark.req("SES-07")
async def test_archives_lose_them_and_are_summed_up_again_without_a_model(make_store: MakeStore) -> None:
    store = await filled(make_store, 2)
    ending = ConversationEnd("msg_1", "session_timeout", "They said question 0, then question 1.")
    first = await store.archive(THREAD, ending)
    assert first is not None
    await store.append(THREAD, turn(2))
    await store.archive(THREAD, ConversationEnd("msg_2", "manual", "They said question 2."))
    assert len(await store.archives(THREAD)) == 2
    await store.remove_turns(THREAD, frozenset({"msg_1", "msg_2"}))
    for each in (store, make_store()):
        (left,) = await each.archives(THREAD)
        assert (left.reason, left.archived_at, left.message_count) == (first.reason, first.archived_at, 2)
        assert "question 0" in left.summary
        assert "question 1" not in left.summary
        assert "question 1" not in json.dumps([*(await each.archived_turns(THREAD)).values()])


@pytest.mark.parametrize("make_store", ["postgresql"], indirect=True)  # in files only one process writes
async def test_another_process_that_read_an_archive_before_shows_nothing_of_them_either(make_store: MakeStore) -> None:
    store, other = await filled(make_store, 2), make_store()
    await store.archive(THREAD, ConversationEnd("msg_1", "manual", "They said question 0, then question 1."))
    assert len(await other.archives(THREAD)) == 1
    await store.remove_turns(THREAD, frozenset({"msg_1"}))
    (left,) = await other.archives(THREAD)
    assert "question 1" not in left.summary


def read_all(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


async def test_no_file_of_the_session_holds_them_afterwards(tmp_path: Path) -> None:
    store = await filled(lambda: FileSessionStore(tmp_path, "tess"), 4)
    await store.compact(THREAD, Compaction(message_id="msg_1", summary="They said question 1.", turns=2))
    await store.remove_turns(THREAD, frozenset({"msg_1", "msg_3"}))
    text = read_all(tmp_path)
    assert "question 0" in text
    assert "question 1" not in text
    assert "question 3" not in text


async def test_a_session_is_archived_without_a_model_if_none_may_be_asked(
    make_store: MakeStore, tmp_path: Path
) -> None:
    model = ListedModel("A summary of a model.")
    talk = Talk(make_store(), model, tmp_path)
    await talk.store.append(THREAD, turn(0))
    await talk.sessions.clear(THREAD, by_model=False)
    (archive,) = await make_store().archives(THREAD)
    assert "question 0" in archive.summary
    assert await open_ids(make_store()) == []
