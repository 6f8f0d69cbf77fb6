"""Where an audit begins: in a new home, in one that is older than its audit, and never anew in one that had one."""

from __future__ import annotations

import pytest

from annabelle.store.audit.records import AuditPaths, get_or_create_key, has_started_audit, write_key
from annabelle.store.audit.verification import verify_audit
from store.audit.conftest import write


def fault(places: AuditPaths) -> tuple[str, int | None]:
    problem = verify_audit(places).problem
    assert problem is not None
    return problem.fault, problem.n


@pytest.mark.req("TRU-08")
def test_a_home_in_which_something_was_forgotten_before_there_was_an_audit_has_lost_none(places: AuditPaths) -> None:
    key = _forgotten_before(places)
    assert verify_audit(places).is_intact
    write(places, 3)
    assert verify_audit(places).is_intact
    assert get_or_create_key(places.key) == key, "what was forgotten can still be told by it"
    for path in (places.active, places.head):
        path.unlink()
    assert fault(places) == ("head", None), "from then on there is an audit to be missed"
    write(places, 1)
    assert fault(places) == ("head", 1)


@pytest.mark.req("TRU-08")
def test_forgetting_is_no_cover_for_an_audit_that_is_gone(ten: AuditPaths) -> None:
    _forgotten_before(ten)
    ten.active.unlink()
    ten.head.unlink()
    assert fault(ten) == ("head", None)
    write(ten, 1)
    assert fault(ten) == ("head", 1)


@pytest.mark.req("TRU-08")
def test_a_key_of_an_older_version_is_marked_at_the_next_start(ten: AuditPaths) -> None:
    write_key(ten.key, get_or_create_key(ten.key))
    write(ten, 1)
    assert verify_audit(ten).is_intact
    assert has_started_audit(ten.key)


def _forgotten_before(places: AuditPaths) -> bytes:
    """As forgetting does in a home whose hub writes no audit."""
    places.forgotten.parent.mkdir(parents=True, exist_ok=True)
    places.forgotten.write_text("{}\n")
    return get_or_create_key(places.key)
