"""A ledger with everything it stands on, as the hub has it, without the hub's processes."""

from __future__ import annotations

from typing import cast

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.settings import Settings
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.launcher import ThinkerLauncher
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.conversations.event_log import EventFanout, EventLog
from annabelle.hub.costs.ledger import CostAnnouncer, CostLedger
from annabelle.hub.notices import Notices
from annabelle.store import cost_control
from annabelle.store.database import Database


class House:
    """A ledger with everything it stands on, as the hub has it."""

    def __init__(self, home: Home, database: Database, settings: Settings) -> None:
        self.database, self.notices = database, Notices()
        registry = AgentRegistry(AgentsFile(home, settings, self.notices))
        self.agents = AgentManager(
            settings, registry, Halts(home.halts_file), cast("ThinkerLauncher", None), database, self.notices
        )
        log = EventLog(database, EventFanout())
        self.ledger = CostLedger(settings, database, self.agents, CostAnnouncer(log, settings), self.notices)

    async def standing(self) -> tuple[int, int]:
        day, _ = await self.database.read(lambda conn: cost_control.read_spending(conn, now()))
        return day.settled, day.reserved


async def house(home: Home, database: Database, **settings: object) -> House:
    made = House(home, database, Settings.model_validate({"user_timezone": "UTC", **settings}))
    await made.agents.start()
    return made


def request(call_id: str, usd: float, **fields: object) -> Reserve:
    known = {"agent_id": "annabelle", "user_id": "owner", "message_id": None, "purpose": "chat"}
    more = {"provider": "groq", "model": "m", "estimated_input_tokens": 10, "reserved_usd": usd}
    return Reserve.model_validate({"call_id": call_id, **known, **more, **fields})


def record(call_id: str, usd: float, tokens: int = 10, **fields: object) -> ModelCall:
    known = {"agent_id": "annabelle", "user_id": "owner", "message_id": None, "trace_id": None, "purpose": "chat"}
    usage = TokenUsage(input_tokens=tokens, cost_usd=usd)
    more = {"provider": "groq", "model": "m", "usage": usage, "duration_ms": 1.0}
    return ModelCall.model_validate({"call_id": call_id, **known, **more, **fields})
