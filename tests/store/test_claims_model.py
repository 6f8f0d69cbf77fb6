"""Whatever order things happen in, the claims behave like a simple model of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import Engine

from annabelle.core.messages import InboundMessage
from annabelle.store import claims, messages, threads
from annabelle.store.database import sqlite_url
from annabelle.store.engine import make_engine
from annabelle.store.messages import QueueLimits
from annabelle.store.schema_migration import create_tables

CHATS, OWNERS, BOUND = ["a", "b", "c"], ["hub1", "hub2"], 2


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = make_engine(sqlite_url(tmp_path_factory.mktemp("claims") / "annabelle.db"), pool_size=1)
    with made.begin() as connection:
        create_tables(connection)
    yield made
    made.dispose()


Action = st.one_of(
    st.tuples(st.just("receive"), st.sampled_from(CHATS)),
    st.tuples(st.just("claim"), st.sampled_from(OWNERS)),
    st.tuples(st.just("finish"), st.integers(0, 5)),
)


@pytest.mark.req("DUR-04")
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(Action, max_size=40))
def test_claims_follow_the_model(engine: Engine, actions: list[tuple[str, object]]) -> None:
    waiting: dict[str, list[str]] = {chat: [] for chat in CHATS}
    held: dict[str, tuple[str, str]] = {}  # chat: owner, message
    with engine.connect() as connection:
        for what, which in actions:
            if what == "receive":
                chat = str(which)
                thread = threads.find_or_create_thread(connection, channel="t", chat_id=chat, user_id="u", agent_id="a")
                message = InboundMessage(channel="t", chat_id=chat, sender_id="s", text="x", user_id="u")
                messages.queue_message(connection, thread, message, QueueLimits())
                waiting[chat].append(message.id)
            elif what == "claim":
                owner = str(which)
                free = BOUND - sum(holder == owner for holder, _message in held.values())
                idle = [(waiting[chat][0], chat) for chat in CHATS if waiting[chat] and chat not in held]
                expected = [message_id for message_id, _chat in sorted(idle)[: max(0, free)]]
                taken = claims.claim_next_messages(connection, owner, BOUND)
                assert [one.message_id for one in taken] == expected
                for one in taken:
                    waiting[one.message.chat_id].pop(0)
                    held[one.message.chat_id] = (owner, one.message_id)
            elif held:
                chat = sorted(held)[int(str(which)) % len(held)]
                _owner, message_id = held.pop(chat)
                assert messages.set_message_state(connection, message_id, "done")
                assert claims.release_claim(connection, message_id)
            for owner in OWNERS:
                mine = sorted(message_id for holder, message_id in held.values() if holder == owner)
                assert [one.message_id for one in claims.list_claims(connection, owner)] == mine
        connection.rollback()
