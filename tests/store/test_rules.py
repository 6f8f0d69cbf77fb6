"""Rules in the store: who they hold for, from when, until when, and never for somebody else."""

from __future__ import annotations

import pytest

from annabelle.core.errors import Conflict, NotFound
from annabelle.store import rules
from annabelle.store.database import Database
from annabelle.store.rules import NewRule, StoredRule

ASK = NewRule("owner", "ask", "Always ask before deleting mail.", {"tools": ["gmail_delete_email"]})


async def holding(db: Database, user_id: str = "owner", agent_id: str | None = "annabelle") -> list[StoredRule]:
    return await db.read(lambda conn: rules.list_active_rules(conn, user_id, agent_id))


@pytest.mark.req("TRU-05")
async def test_a_stated_rule_holds_at_once_and_a_proposed_one_when_the_person_has_confirmed_it(db: Database) -> None:
    stated = await db.write(lambda conn: rules.add_rule(conn, ASK, "stated"))
    other = NewRule("owner", "never", "Never run code.", {"classes": ["execute"]})
    proposed = await db.write(lambda conn: rules.add_rule(conn, other, "proposed"))
    assert [rule.id for rule in await holding(db)] == [stated.id]
    confirmed = await db.write(lambda conn: rules.confirm_rule(conn, proposed.id, "owner"))
    assert (confirmed.state, confirmed.confirmed_at is not None) == ("active", True)
    assert [rule.words for rule in await holding(db)] == [ASK.words, "Never run code."]


@pytest.mark.req("TRU-05")
async def test_a_revoked_rule_holds_no_more_stays_readable_and_can_not_be_confirmed(db: Database) -> None:
    rule = await db.write(lambda conn: rules.add_rule(conn, ASK, "active"))
    await db.write(lambda conn: rules.revoke_rule(conn, rule.id, "owner"))
    again = await db.write(lambda conn: rules.revoke_rule(conn, rule.id, "owner"))
    assert (await holding(db), again.state) == ([], "revoked")
    assert await db.read(lambda conn: rules.list_rules(conn, "owner")) == []
    assert await db.read(lambda conn: rules.list_rules(conn, "owner", revoked=True)) == [again]
    with pytest.raises(Conflict, match="was revoked"):
        await db.write(lambda conn: rules.confirm_rule(conn, rule.id, "owner"))


async def test_the_same_rule_said_twice_is_one_rule_and_only_grows_firmer(db: Database) -> None:
    states = ("proposed", "stated", "proposed", "active", "stated")
    said = [await db.write(lambda conn, state=state: rules.add_rule(conn, ASK, state)) for state in states]
    assert len({rule.id for rule in said}) == 1
    assert [rule.state for rule in said] == ["proposed", "stated", "stated", "active", "active"]
    await db.write(lambda conn: rules.revoke_rule(conn, said[0].id, "owner"))
    assert (await db.write(lambda conn: rules.add_rule(conn, ASK, "stated"))).id != said[0].id


@pytest.mark.req("POL-05")
async def test_an_allowance_holds_for_its_person_and_agent_only_and_only_they_can_end_it(db: Database) -> None:
    match: dict[str, object] = {"tools": ["gmail_send_email"], "arguments": {"to": "ann@example.com"}}
    allowed = await db.write(
        lambda conn: rules.add_allowance(conn, user_id="owner", agent_id="annabelle", words="Mail to Ann", match=match)
    )
    assert await holding(db) == [allowed]
    assert (await holding(db, agent_id="other"), await holding(db, user_id="bob")) == ([], [])
    for act in (rules.get_rule, rules.confirm_rule, rules.revoke_rule):
        with pytest.raises(NotFound, match="no rule"):
            await db.write(lambda conn, act=act: act(conn, allowed.id, "bob"))
    assert await db.read(lambda conn: rules.list_rules(conn, "bob")) == []
