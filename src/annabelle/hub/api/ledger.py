"""The ledger as thinkers use it: reserve before a model call, settle after (CST-09). Not for people."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from annabelle.core.contract import ModelCall, Reserve
from annabelle.embeddings.books import PURPOSE
from annabelle.hub.api.documented import read_body
from annabelle.hub.costs.monitor import CostWindow
from annabelle.hub.security.identities import Identity
from annabelle.hub.services import Hub


class CostStatus(CostWindow):
    """How an agent's spending stands."""

    paused: bool
    pause_reason: str | None


async def reserve(request: Request) -> Response:
    """Whether a model call may be made."""
    hub: Hub = request.app.state.hub
    asked = await read_body(request, Reserve)
    reservation = await hub.ledger.reserve(asked.model_copy(update=_whose(request)))
    return Response(reservation.model_dump_json(), media_type="application/json")


async def settle(request: Request) -> Response:
    """What a model call used."""
    hub: Hub = request.app.state.hub
    call = await read_body(request, ModelCall)
    await hub.ledger.settle(call.model_copy(update=_whose(request)))
    return Response(status_code=204)


async def status(request: Request) -> Response:
    """How fast the agent spends, and whether it is paused; its thinker shows it as its own."""
    hub: Hub = request.app.state.hub
    agent = hub.agents.status(_agent(request))
    state = CostStatus(paused=agent.paused, pause_reason=agent.pause_reason, **agent.costs.model_dump())
    return Response(state.model_dump_json(by_alias=True), media_type="application/json")


def _whose(request: Request) -> dict[str, str]:
    """Whose call it is: a subagent's is its parent's, made for the message that its parent answers (AGT-04)."""
    caller: Identity = request.state.identity
    if caller.kind == "server":
        return {"purpose": PURPOSE}  # it makes vectors, and can book nothing else
    errand = {} if caller.errand is None else {"message_id": caller.errand.message_id}
    return {"agent_id": _agent(request), **errand}


def _agent(request: Request) -> str:
    # The door lets only agents come here; the book names the one that asked, not the one it claims to be.
    caller: Identity = request.state.identity
    assert caller.agent_id is not None
    return caller.agent_id


# Plain routes, outside the document: they are used several times in every turn.
ROUTES = (
    Route("/internal/ledger/reserve", reserve, methods=["POST"], include_in_schema=False),
    Route("/internal/ledger/settle", settle, methods=["POST"], include_in_schema=False),
    Route("/internal/ledger/status", status, methods=["GET"], include_in_schema=False),
)
