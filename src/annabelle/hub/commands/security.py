"""`/security`: what was refused, asked, found or changed lately, from the audit."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final, cast

from annabelle.core.text import escape_invisible
from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.security.audit import read_safety_records
from annabelle.store.audit.records import AuditChainRecord

_DEFAULT: Final = 10
_MOST: Final = 50


class SecurityCommand(Command):
    info = CommandInfo(
        name="security",
        usage="[N]",
        summary=f"The latest N records of the audit about safety, up to {_MOST}.",
        examples=("/security", "/security 20"),
        admin=True,
        scope="manage",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        count = self.read_count(call.words, _DEFAULT, _MOST)
        found = await asyncio.to_thread(read_safety_records, self.deps.status.base.home, count)
        return CommandAnswer("\n".join(map(self._describe, found)) or "The audit has no record about safety yet.")

    def _describe(self, record: AuditChainRecord) -> str:
        at = datetime.fromisoformat(record.at).astimezone(self.deps.services.skills.time_zone)
        facts = [f"{name}={_shorten(value)}" for name, value in record.facts.items() if value not in (None, "")]
        return f"{at:%Y-%m-%d %H:%M} {record.kind}: {' '.join(facts)}"


def _shorten(value: object) -> str:
    text = ",".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
    return escape_invisible(text[:60])
