"""Where an audit begins: in a new home, in one that is older than its audit, and never anew in one that had one."""

from __future__ import annotations

import pytest

from annabelle.store.audit.key import has_begun, keep_key, make_key
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.verify import verify
from store.audit.conftest import write


def fault(places: AuditPlaces) -> tuple[str, int | None]:
    problem = verify(places).problem
    assert problem is not None
    return problem.fault, problem.n


@pytest.mark.req("TRU-08")
def test_a_home_in_which_something_was_forgotten_before_there_was_an_audit_has_lost_none(places: AuditPlaces) -> None:
    key = _forgotten_before(places)
    assert verify(places).good
    write(places, 3)
    assert verify(places).good
    assert make_key(places.key) == key, "what was forgotten can still be told by it"
    for path in (places.active, places.head):
        path.unlink()
    assert fault(places) == ("head", None), "from then on there is an audit to be missed"
    write(places, 1)
    assert fault(places) == ("head", 1)


@pytest.mark.req("TRU-08")
def test_forgetting_is_no_cover_for_an_audit_that_is_gone(ten: AuditPlaces) -> None:
    _forgotten_before(ten)
    ten.active.unlink()
    ten.head.unlink()
    assert fault(ten) == ("head", None)
    write(ten, 1)
    assert fault(ten) == ("head", 1)


@pytest.mark.req("TRU-08")
def test_a_key_of_an_older_version_is_marked_at_the_next_start(ten: AuditPlaces) -> None:
    keep_key(ten.key, make_key(ten.key))
    write(ten, 1)
    assert verify(ten).good
    assert has_begun(ten.key)


def _forgotten_before(places: AuditPlaces) -> bytes:
    """As forgetting does in a home whose hub writes no audit."""
    places.forgotten.parent.mkdir(parents=True, exist_ok=True)
    places.forgotten.write_text("{}\n")
    return make_key(places.key)
