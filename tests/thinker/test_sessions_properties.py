"""Whatever is done to a session, and whatever stands in its file, no turn is lost and none is there twice."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.thinker.session import file_store as session_files
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.records import Compaction, SessionLines
from annabelle.thinker.session.session_store import ConversationEnd
from thinker.talks import THREAD, turn

MOMENTS = ("thinker.older_kept", "thinker.compacted", "thinker.archived", "thinker.started_afresh")
ACTS = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 12)),
    st.tuples(st.just("compact"), st.integers(0, 12)),
    st.tuples(st.just("archive"), st.sampled_from(("", *MOMENTS))),
    st.tuples(st.just("kill in compact"), st.sampled_from(MOMENTS[:2])),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("tear"), st.integers(1, 60)),
)


class Killed(BaseException):
    """The process ended here."""


def _dying(moment: object) -> pytest.MonkeyPatch:
    def die(name: str) -> None:
        if name == moment:
            raise Killed

    patch = pytest.MonkeyPatch()
    patch.setattr(session_files, "failpoint", die)
    return patch


def everything(folder: Path) -> list[str]:
    """The ids of all turns on disk, as the next process would count them."""

    def lines(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    archived = [turn for one in lines(folder / "archive" / f"{THREAD}.jsonl") for turn in one["turns"]]
    records = [*archived, *lines(folder / "older" / f"{THREAD}.jsonl"), *lines(folder / f"{THREAD}.jsonl")]
    return [str(one["message_id"]) for one in records if one.get("type") == "turn"]


@pytest.mark.req("SES-01", "SES-02", "SES-03")
@pytest.mark.incident("I-21")
@settings(max_examples=80, deadline=None)
@given(acts=st.lists(ACTS, max_size=14))
async def test_turns_survive_any_sequence_of_summaries_archives_kills_and_torn_lines(
    acts: list[tuple[str, object]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store, said = FileSessionStore(folder, "tess"), list[str]()
        for act, how in acts:
            session = await store.session(THREAD)
            last = session.last_message_id
            if act == "say":
                number = len(said)
                await store.append(THREAD, turn(number))
                said.append(f"msg_{number}")
                await store.append(THREAD, turn(number))
            elif act == "compact" and session.turns:
                chosen = session.turns[int(str(how)) % len(session.turns)].message_id
                await store.compact(THREAD, Compaction(message_id=chosen, summary="s", turns=1))
            elif act == "archive" and last is not None:
                patch = _dying(how)
                try:
                    await store.archive(THREAD, ConversationEnd(last, "manual", "s"))
                except Killed:
                    store = FileSessionStore(folder, "tess")
                patch.undo()
            elif act == "kill in compact" and last is not None:
                patch = _dying(how)
                try:
                    await store.compact(THREAD, Compaction(message_id=last, summary="s", turns=1))
                except Killed:
                    store = FileSessionStore(folder, "tess")
                patch.undo()
            elif act == "restart":
                store = FileSessionStore(folder, "tess")
            elif act == "tear":
                path = store.path(THREAD)
                with path.open("ab") if path.exists() else tempfile.TemporaryFile() as file:
                    file.write(b'{"type": "turn", "message_id": "msg_torn", "user": "' + b"x" * int(str(how)))
                store = FileSessionStore(folder, "tess")
        await FileSessionStore(folder, "tess").session(THREAD)
        found = everything(folder)
        assert list(dict.fromkeys(found)) == said, "nothing is lost, and the order stays"
        await store.append(THREAD, turn(99))
        assert await store.archive(THREAD, ConversationEnd("msg_99", "manual", "s")) is not None
        assert everything(folder) == [*said, "msg_99"], "and in the end each turn is there once"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["header", "turn", "compaction", "cleared", "archive", "other", 7, None])
NAMES = st.sampled_from(["message_id", "at", "user", "summary", "archived", "x"])


def _turn(number: int) -> dict[str, object]:
    return turn(number).to_json()


def _compaction(number: int) -> dict[str, object]:
    return Compaction(message_id=f"msg_{number}", summary="s").to_json()


def _junk(kind: object, rest: dict[str, object]) -> dict[str, object]:
    return {**rest, "type": kind}


LINES = st.one_of(
    st.builds(_turn, st.integers(0, 5)),
    st.builds(_compaction, st.integers(0, 5)),
    st.just({"type": "cleared"}),
    st.builds(_junk, KINDS, st.dictionaries(NAMES, JSON, max_size=5)),
)


@pytest.mark.req("SES-01")
@settings(max_examples=150, deadline=None)
@given(records=st.lists(LINES, max_size=12))
def test_any_lines_are_read_each_turn_once_and_none_is_dropped(records: list[dict[str, object]]) -> None:
    lines = SessionLines.parse(records)
    whole = [str(record["message_id"]) for record in records if "trace_id" in record]
    assert {*lines.open, *lines.closed} >= set(whole)
    assert not set(lines.open) & set(lines.closed)
    assert lines.to_state(40).count == len(lines.open)
