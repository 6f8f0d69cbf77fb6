"""An audit in a home of its own."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
from annabelle.core.redact import Redactor
from annabelle.store.audit.chain import Chain, Limits, Note, moment
from annabelle.store.audit.places import AuditPlaces

SECRET = "sk-very-secret-value-0123456789"


@pytest.fixture
def places(home: Home) -> AuditPlaces:
    return AuditPlaces.of(home)


def chain_at(places: AuditPlaces, limits: Limits | None = None) -> Chain:
    chain = Chain(places, limits or Limits(), Redactor([SECRET]))
    chain.open()
    return chain


def write(places: AuditPlaces, count: int, limits: Limits | None = None) -> None:
    """So many records by one life of a hub that ended well."""
    chain = chain_at(places, limits)
    for number in range(count):
        chain.append([Note("tool", {"tool": f"tool_{number}", "outcome": "ok"}, moment())])
    chain.close()


@pytest.fixture
def ten(places: AuditPlaces) -> AuditPlaces:
    write(places, 10)
    return places
