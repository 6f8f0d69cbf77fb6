"""An audit in a home of its own."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.store.audit.chain import AuditChain, AuditLimits, AuditNote, timestamp_now
from annabelle.store.audit.records import AuditPaths

SECRET = "sk-very-secret-value-0123456789"


@pytest.fixture
def places(home: Home) -> AuditPaths:
    return AuditPaths.from_home(home)


def chain_at(places: AuditPaths, limits: AuditLimits | None = None) -> AuditChain:
    chain = AuditChain(places, limits or AuditLimits(), Redactor([SECRET]))
    chain.open()
    return chain


def write(places: AuditPaths, count: int, limits: AuditLimits | None = None) -> None:
    """So many records by one life of a hub that ended well."""
    chain = chain_at(places, limits)
    for number in range(count):
        chain.append([AuditNote("tool", {"tool": f"tool_{number}", "outcome": "ok"}, timestamp_now())])
    chain.close()


@pytest.fixture
def ten(places: AuditPaths) -> AuditPaths:
    write(places, 10)
    return places
