"""`POST /memory/forget`: see where a text stands, and have it forgotten for good."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.messages import OWNER
from annabelle.core.needle import fold
from annabelle.hub.api.documented import Answer, Caller, TheHub, body_of, failures, read_body
from annabelle.hub.forgetting.marker import Pending
from annabelle.hub.forgetting.memory import MatchedFact
from annabelle.hub.forgetting.report import Report

router = APIRouter(tags=["memory"])
LEAST_CHARACTERS = 3


class Forget(BaseModel):
    """What to forget: a text, or a fact by its number. With `preview` nothing is changed."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    text: str | None = Field(default=None, max_length=20_000, description="Found whatever its case or spelling")
    fact_id: int | None = Field(default=None, ge=1, description="Forget the words of this fact and of those before it")
    with_source: bool = Field(default=False, description="With factId: also what was said where the fact came from")
    preview: bool = Field(default=True, description="Only say where it stands")


class ForgetPlace(Answer):
    """Rows, lines or files of one kind, and what becomes of them."""

    place: str = Field(examples=["conversations"])
    count: int
    fate: Literal["deleted", "masked", "rewritten"]


class ForgetFact(Answer):
    id: int
    fact: str
    current: bool


class Forgotten(Answer):
    """Where the text stood. `own` are the person's own files, which are never touched."""

    preview: bool
    total: int
    places: list[ForgetPlace]
    facts: list[ForgetFact]
    own: list[str]
    near: list[ForgetFact] = Field(description="When it stands nowhere: facts that mean something like it")


@router.post(
    "/memory/forget",
    operation_id="forget",
    responses=failures(404, 409),
    openapi_extra=body_of(Forget),
    summary="Forget a text for good",
)
async def forget(request: Request, hub: TheHub, caller: Caller) -> Forgotten:
    """Only the owner of the home may do this: it goes through everything in it. No turn runs meanwhile; messages
    wait. What was forgotten can not be brought back, and is remembered as a keyed hash only."""
    if caller.kind != "owner" or caller.user_id != OWNER:
        raise NotAllowed("Only the owner of this home can have something forgotten.")
    asked = await read_body(request, Forget)
    _check(asked)
    await hub.progress.wait_ready()
    agent_id = hub.agents.config.default.agent_id
    texts = (asked.text,) if asked.text is not None else ()
    if asked.fact_id is not None:
        texts = await hub.forgetting.texts_of(asked.fact_id, asked.with_source, caller.user_id, agent_id)
    pending = Pending(texts=texts, user_id=caller.user_id, agent_id=agent_id)
    if not asked.preview:
        return _answer(await hub.forgetting.forget(pending), preview=False)
    report = await hub.forgetting.preview(pending)
    return _answer(report, () if report.places else await hub.forgetting.near(pending), preview=True)


def _check(asked: Forget) -> None:
    if (asked.text is None) == (asked.fact_id is None):
        raise InvalidArguments("Give either text or factId.", field="text")
    if asked.text is not None and len(fold(asked.text)) < LEAST_CHARACTERS:
        raise InvalidArguments(
            f"The text to forget needs at least {LEAST_CHARACTERS} characters.",
            hint="Fewer would stand everywhere.",
            field="text",
        )


def _answer(report: Report, near: tuple[MatchedFact, ...] = (), *, preview: bool) -> Forgotten:
    return Forgotten(
        preview=preview,
        total=report.total,
        places=[ForgetPlace(place=place.name, count=place.count, fate=place.fate) for place in report.places],
        facts=[_fact(fact) for fact in report.facts],
        own=list(report.own),
        near=[_fact(fact) for fact in near],
    )


def _fact(fact: MatchedFact) -> ForgetFact:
    return ForgetFact(id=fact.id, fact=fact.fact, current=fact.current)
