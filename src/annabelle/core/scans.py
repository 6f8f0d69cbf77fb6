"""Which directions of a server's traffic the guardian reads, and how a setting says so (GRD-03)."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from annabelle.core.errors import ConfigMistake

EVERY_SERVER = "*"
_SWITCH = {"on": True, "off": False}
_ENTRY = re.compile(r"^(?P<server>\*|[A-Za-z0-9][A-Za-z0-9_-]{0,39})=(?P<input>on|off)/(?P<output>on|off)$")


class Scan(BaseModel):
    """Which directions of a server's traffic the guardian reads. External servers: both, unless the user says less."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: bool = True
    output: bool = True


class ScanChange(BaseModel):
    """What somebody wants otherwise for a server; a direction that is left out stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: bool | None = None
    output: bool | None = None


def parse_scans(text: str) -> dict[str, ScanChange]:
    """`filer=off/on, *=on/on`: first what goes to a server, then what it gives back; `*` is every server not named."""
    changes: dict[str, ScanChange] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        found = _ENTRY.match(entry)
        if found is None:
            raise ConfigMistake(
                f"GUARDIAN_SCAN: {entry[:60]!r} is not of the form server=on/off.",
                hint="Write what goes to the server before the stroke and what it gives back behind it: filer=off/on",
                field="GUARDIAN_SCAN",
            )
        changes[found["server"]] = ScanChange(input=_SWITCH[found["input"]], output=_SWITCH[found["output"]])
    return changes
