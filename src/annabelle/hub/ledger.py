"""The one book of model costs, kept by the hub for every process that calls a model (CST-09)."""

from __future__ import annotations

from annabelle.core.contract import ModelCall, Reservation, Reserve
from annabelle.store import ledger
from annabelle.store.database import Database


class StoredLedger:
    """Writes reservations and settlements down; both may be told twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def reserve(self, request: Reserve) -> Reservation:
        await self._database.write(lambda conn: ledger.reserve(conn, request))
        return Reservation(call_id=request.call_id, allowed=True)

    async def settle(self, call: ModelCall) -> None:
        await self._database.write(lambda conn: ledger.settle(conn, call))
