"""`/rules`: each user's standing rules for agents (TRU-05, POL-05)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import ConfigDict, Field

from annabelle.core.tools import JsonObject
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.trust.rules import describe_rule
from annabelle.store.rules import RuleKind, RuleState, StoredRule

router = ApiRouter("rules")
RuleId = Annotated[str, Path(pattern=ID_SHAPE, examples=["rule_01k9zq3v7k0000000000000000"])]


class NewRuleBody(ApiBody):
    """A rule in your words. It only ever restricts: what an agent may always do is said when it asks."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"words": "Always ask before deleting mail."}]})

    words: str = Field(min_length=1, max_length=300)
    agent_id: str | None = Field(default=None, pattern=ID_SHAPE, description="For this agent; by default for all")


class RuleView(ApiAnswer):
    """One rule. `stated`: it holds already and waits for your yes or no; `proposed`: it waits, and does not hold."""

    id: str
    kind: RuleKind
    state: RuleState
    words: str
    reading: str = Field(description="How it is understood")
    match: JsonObject = Field(description="Which calls it is about")
    agent_id: str | None
    created_at: datetime
    confirmed_at: datetime | None
    revoked_at: datetime | None


class RuleList(ApiAnswer):
    rules: list[RuleView]


@router.get("/rules", **document("Your rules"))
async def list_rules(
    hub: TheHub, caller: Caller, revoked: Annotated[bool, Query(description="Those that were revoked, too")] = False
) -> RuleList:
    """Your own rules, oldest first."""
    found = await hub.services.rules.listing(caller.user_id, revoked=revoked)
    return RuleList(rules=[_to_view(rule) for rule in found])


@router.post("/rules", **document("State a rule", 404, body=NewRuleBody))
async def add_rule(hub: TheHub, caller: Caller, request: Request) -> RuleView:
    """It holds at once. What is not understood is said, and nothing is kept."""
    new = await read_body(request, NewRuleBody)
    if new.agent_id is not None:
        hub.agents.registry.agent(new.agent_id)  # a rule for an unknown agent would never apply
    return _to_view(await hub.services.rules.add(caller.user_id, new.words, new.agent_id))


@router.post("/rules/{rule_id}/confirm", **document("Say yes to a rule", 404, 409))
async def confirm_rule(rule_id: RuleId, hub: TheHub, caller: Caller) -> RuleView:
    """One that was noticed in what you said, or that an agent proposed."""
    return _to_view(await hub.services.rules.confirm(rule_id, caller.user_id))


@router.post("/rules/{rule_id}/revoke", **document("End a rule", 404))
async def revoke_rule(rule_id: RuleId, hub: TheHub, caller: Caller) -> RuleView:
    """From this moment it holds no more, whatever turn is under way."""
    return _to_view(await hub.services.rules.revoke(rule_id, caller.user_id))


def _to_view(rule: StoredRule) -> RuleView:
    return RuleView.from_row(rule, reading=describe_rule(rule))
