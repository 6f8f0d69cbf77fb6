"""`/tokens`: a person's tokens, each for a person, a device or another agent (I-03)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import Path, Request
from pydantic import ConfigDict, Field

from annabelle.core.errors import Conflict, NotAllowed
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.security.users_file import (
    MAIN,
    SCOPES,
    SESSION_NAME,
    USER_ID,
    ApiToken,
    CallerKind,
    Scope,
    UserTokens,
)

T = TypeVar("T")
router = ApiRouter("tokens")
TokenName = Annotated[str, Path(pattern=USER_ID, examples=["phone"])]


class NewToken(ApiBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ci", "kind": "agent", "scopes": ["talk"]}]})

    name: str = Field(pattern=USER_ID)
    kind: CallerKind = Field(description="What an agent says is never taken for your word, and it can approve nothing")
    scopes: list[Scope] | None = Field(
        default=None, description="Never more than your own token has; by default all that its kind may have"
    )


class TokenView(ApiAnswer):
    name: str
    kind: CallerKind
    scopes: list[Scope]
    created_at: datetime | None = Field(description="None for the token in annabelle.token")
    last_used_at: datetime | None


class TokenList(ApiAnswer):
    tokens: list[TokenView]


class MadeToken(TokenView):
    secret: str = Field(description="Shown only here: only its hash is kept")


@router.get("/tokens", **document("Your tokens"))
async def list_tokens(hub: TheHub, caller: Caller) -> TokenList:
    """What each may do and when it was used last; never the token itself."""
    users = hub.security.users
    person = users.users.get(caller.user_id)
    main = TokenView(
        name=MAIN,
        kind="person",
        scopes=sorted(SCOPES),
        created_at=person.created_at if person else None,
        last_used_at=users.last_use(person.token_sha256 if person else ""),
    )
    others = [_view(hub, one) for one in users.users.tokens if one.user_id == caller.user_id]
    return TokenList(tokens=[main, *others])


@router.post("/tokens", **document("Make a token", 409, body=NewToken))
async def add_token(request: Request, hub: TheHub, caller: Caller) -> MadeToken:
    """It works at once."""
    new = await read_body(request, NewToken)
    if SESSION_NAME.fullmatch(new.name):
        raise Conflict(f"{new.name} is the name of a session of the page.", hint="Take another name.", field="name")
    token, secret = await change_tokens(hub, caller, lambda tokens: tokens.add(new.name, new.kind, new.scopes))
    return MadeToken(**_view(hub, token).model_dump(), secret=secret)


@router.post("/tokens/{name}/rotate", **document("Give a token a new secret", 404))
async def rotate_token(name: TokenName, hub: TheHub, caller: Caller) -> MadeToken:
    """The old secret is no longer good and its streams end; kind and scopes stay."""
    token, secret = await change_tokens(hub, caller, lambda tokens: tokens.rotate(name))
    return MadeToken(**_view(hub, token).model_dump(), secret=secret)


@router.post("/tokens/{name}/revoke", **document("Take a token back", 404))
async def revoke_token(name: TokenName, hub: TheHub, caller: Caller) -> TokenView:
    """It is no longer good, and its streams end at once."""
    return _view(hub, await change_tokens(hub, caller, lambda tokens: tokens.revoke(name)))


@router.get("/sessions/tokens", **document("Your tokens, for the page"))
async def list_page_tokens(hub: TheHub, caller: Caller) -> TokenList:
    """Only for a session of the page, which can neither make nor rotate a token."""
    _require_page(caller)
    return await list_tokens(hub, caller)


@router.post("/sessions/tokens/{name}/revoke", **document("Take a token back, from the page", 404))
async def revoke_page_token(name: TokenName, hub: TheHub, caller: Caller) -> TokenView:
    """One that may do no more than the session itself."""
    _require_page(caller)
    for one in hub.security.users.users.tokens:
        if (one.user_id, one.name) == (caller.user_id, name) and set(one.scopes) - caller.grant.scopes:
            hint = f"In a terminal: annabelle tokens revoke {name}"
            raise NotAllowed(f"The token {name} may do more than this browser.", hint=hint)
    return await revoke_token(name, hub, caller)


def _require_page(caller: CallerIdentity) -> None:
    if SESSION_NAME.fullmatch(caller.grant.name) is None:
        raise NotAllowed("This is not a session of the page.", hint="annabelle tokens does it.")


async def change_tokens(hub: HubContext, caller: CallerIdentity, change: Callable[[UserTokens], T]) -> T:
    """Change the tokens of a person with what the caller's own may do. It counts at once."""
    users = hub.security.users
    tokens = UserTokens(hub.base.home.users_file, caller.user_id, caller.grant.hash, caller.grant.scopes)
    try:
        return await asyncio.to_thread(change, tokens)
    finally:
        users.reload_if_changed()


def _view(hub: HubContext, token: ApiToken) -> TokenView:
    return TokenView.from_row(token, last_used_at=hub.security.users.last_use(token.token_sha256))
