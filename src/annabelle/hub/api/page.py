"""The page: its files, the links that sign a browser in, and its session (UX-02)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from fastapi import Request, Response
from pydantic import Field
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope as AsgiScope

from annabelle.core.errors import NotAllowed, Unauthorized
from annabelle.core.messages import now
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.api.tokens import change_tokens
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.security.page_links import COOKIE, split_secret
from annabelle.hub.security.users_file import SESSION_NAME, SESSION_TTL, UserTokens

router = ApiRouter("page")
FOLDER: Final = Path(__file__).parents[2] / "page"
_MOST_SESSIONS: Final = 20
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class PageFiles(StaticFiles):
    """Served as they are. A browser asks each time whether one has changed."""

    async def get_response(self, path: str, scope: AsgiScope) -> Response:
        found = await super().get_response(path, scope)
        found.headers.update(_HEADERS)
        return found


async def _to_page(_request: Request) -> Response:
    return RedirectResponse("/page/", headers=_HEADERS)


router.routes += (
    Route("/", _to_page),
    Route("/page", _to_page),
    Mount("/page", PageFiles(directory=FOLDER, html=True, check_dir=False)),
)


class PageLink(ApiAnswer):
    path: str = Field(description="Behind the address of the hub; it works once")
    expires_at: datetime


class PageCode(ApiBody):
    code: str = Field(min_length=1, max_length=200)


class PageKey(ApiAnswer):
    key: str = Field(description="Half of the session's token, sent as X-Annabelle-Page; the other half is a cookie")


class PageSession(ApiAnswer):
    """Who looks at the page."""

    user_id: str
    owner: bool
    scopes: list[str]
    time_zone: str
    stopped: bool = Field(description="Whether everything is stopped")
    agent_id: str = Field(description="Who answers where nobody else is named")
    set_up: bool = Field(description="Whether somebody has chosen settings; else the page offers to")


@router.post("/sessions/links", **document("Make a link that opens the page once"))
async def make_link(hub: TheHub, caller: Caller) -> PageLink:
    """Good for five minutes. Needs the scope `tokens`, so the page itself makes none."""
    if "tokens" not in caller.grant.scopes:
        raise NotAllowed(f"The token {caller.grant.name} has no scope tokens.", hint="annabelle open makes a link.")
    code, until = hub.security.page_links.make(caller)
    return PageLink(path=f"/page/#link={code}", expires_at=until)


@router.post("/sessions", **document("Sign a browser in with a link", body=PageCode))
async def begin_session(hub: TheHub, request: Request, response: Response) -> PageKey:
    """Makes a token of the kind device, which `annabelle tokens` shows and can take back."""
    code = (await read_body(request, PageCode)).code
    links = hub.security.page_links
    async with links.one_at_a_time:
        caller = links.find(code)
        secret = await change_tokens(hub, caller, lambda tokens: _add_token(hub, caller, tokens))
        links.spend(code)
    cookie, key = split_secret(secret)
    response.set_cookie(
        COOKIE.decode(), cookie, max_age=int(SESSION_TTL.total_seconds()), path="/", httponly=True, samesite="strict"
    )
    response.headers["Cache-Control"] = "no-store"
    return PageKey(key=key)


@router.get("/sessions/current", **document("Who looks at the page"))
async def show_session(hub: TheHub, caller: Caller) -> PageSession:
    return PageSession(
        user_id=caller.user_id,
        owner=caller.kind == "owner",
        scopes=sorted(caller.grant.scopes),
        time_zone=str(hub.services.skills.time_zone),
        stopped=hub.conversations.stopper.halts.everything is not None,
        agent_id=hub.agents.registry.config.default.agent_id,
        set_up=hub.base.home.settings_file.exists(),
    )


@router.post("/sessions/current/end", status_code=204, **document("Sign this browser out"))
async def end_session(hub: TheHub, caller: Caller) -> Response:
    """The token of the session is no longer good."""
    if SESSION_NAME.fullmatch(caller.grant.name) is None:
        raise Unauthorized("This is not a session of the page.")
    await change_tokens(hub, caller, lambda tokens: tokens.revoke(caller.grant.name))
    ended = Response(status_code=204)
    ended.delete_cookie(COOKIE.decode(), path="/", httponly=True, samesite="strict")
    return ended


def _add_token(hub: HubContext, caller: CallerIdentity, tokens: UserTokens) -> str:
    """One more session. Those that nobody used for long make room."""
    users = hub.security.users
    users.reload_if_changed()
    own = [one for one in users.users.tokens if one.user_id == caller.user_id and SESSION_NAME.fullmatch(one.name)]
    used = {one.name: users.last_use(one.token_sha256) or one.created_at for one in own}
    oldest = now() - SESSION_TTL
    for place, name in enumerate(sorted(used, key=used.__getitem__, reverse=True)):
        if place >= _MOST_SESSIONS - 1 or used[name] < oldest:
            tokens.revoke(name)
    number = 1 + max((int(one.name.partition("-")[2]) for one in own), default=0)
    _, secret = tokens.add(f"page-{number}", "device", None)
    return secret
