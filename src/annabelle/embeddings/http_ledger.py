"""The hub's ledger over HTTP, for servers that make vectors."""

from __future__ import annotations

from typing import Final

import httpx2 as httpx

from annabelle.core.contract import TOKEN_HEADER, ModelCall, Reservation, Reserve
from annabelle.core.errors import HubUnreachable
from annabelle.core.network_access import trust_store

_LEDGER_SECONDS: Final = 30.0


class HttpLedger:
    """Ledger client with a token that gives access to nothing else."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={TOKEN_HEADER: token},
            timeout=_LEDGER_SECONDS,
            verify=trust_store(url),
            trust_env=False,
        )

    async def reserve(self, request: Reserve) -> Reservation:
        return Reservation.model_validate_json(await self._post("reserve", request.model_dump_json()))

    async def settle(self, call: ModelCall) -> None:
        await self._post("settle", call.model_dump_json())

    async def _post(self, what: str, body: str) -> bytes:
        try:
            answer = await self._http.post(f"/internal/ledger/{what}", content=body)
        except httpx.HTTPError as error:
            raise HubUnreachable("The hub does not answer.") from error
        if answer.is_error:
            raise HubUnreachable(f"The hub refused to book (status {answer.status_code}).")
        return answer.content
