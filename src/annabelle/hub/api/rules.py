"""`/rules`: each user's standing rules for agents (TRU-05, POL-05)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from annabelle.core.tools import JsonObject
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, Caller, TheHub, document_body, error_responses, read_body
from annabelle.hub.trust.rules import describe_rule
from annabelle.store.rules import RuleKind, RuleState, StoredRule

router = APIRouter(tags=["rules"])
RuleId = Annotated[str, Path(pattern=ID_SHAPE, examples=["rule_01k9zq3v7k0000000000000000"])]


class NewRuleBody(BaseModel):
    """A rule in your words. It only ever restricts: what an agent may always do is said when it asks."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        json_schema_extra={"examples": [{"words": "Always ask before deleting mail."}]},
    )

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

    @classmethod
    def from_rule(cls, rule: StoredRule) -> RuleView:
        return cls(
            id=rule.id,
            kind=rule.kind,
            state=rule.state,
            words=rule.words,
            reading=describe_rule(rule),
            match=rule.match,
            agent_id=rule.agent_id,
            created_at=rule.created_at,
            confirmed_at=rule.confirmed_at,
            revoked_at=rule.revoked_at,
        )


class RuleList(ApiAnswer):
    rules: list[RuleView]


@router.get("/rules", operation_id="list_rules", responses=error_responses(), summary="Your rules")
async def list_rules(
    hub: TheHub, caller: Caller, revoked: Annotated[bool, Query(description="Those that were revoked, too")] = False
) -> RuleList:
    """Your own rules, oldest first."""
    return RuleList(
        rules=[RuleView.from_rule(rule) for rule in await hub.services.rules.listing(caller.user_id, revoked=revoked)]
    )


@router.post(
    "/rules",
    operation_id="add_rule",
    responses=error_responses(404),
    openapi_extra=document_body(NewRuleBody),
    summary="State a rule",
)
async def add_rule(hub: TheHub, caller: Caller, request: Request) -> RuleView:
    """It holds at once. What is not understood is said, and nothing is kept."""
    new = await read_body(request, NewRuleBody)
    if new.agent_id is not None:
        hub.agents.registry.agent(new.agent_id)  # a rule for an unknown agent would never apply
    return RuleView.from_rule(await hub.services.rules.add(caller.user_id, new.words, new.agent_id))


@router.post(
    "/rules/{rule_id}/confirm",
    operation_id="confirm_rule",
    responses=error_responses(404, 409),
    summary="Say yes to a rule",
)
async def confirm_rule(rule_id: RuleId, hub: TheHub, caller: Caller) -> RuleView:
    """One that was noticed in what you said, or that an agent proposed."""
    return RuleView.from_rule(await hub.services.rules.confirm(rule_id, caller.user_id))


@router.post(
    "/rules/{rule_id}/revoke", operation_id="revoke_rule", responses=error_responses(404), summary="End a rule"
)
async def revoke_rule(rule_id: RuleId, hub: TheHub, caller: Caller) -> RuleView:
    """From this moment it holds no more, whatever turn is under way."""
    return RuleView.from_rule(await hub.services.rules.revoke(rule_id, caller.user_id))
