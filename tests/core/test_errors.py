"""Every error has a code of its own that maps to one HTTP status and one exit code, and the tree is drawn right."""

from __future__ import annotations

import pytest

from annabelle.core import errors
from annabelle.core.errors import AnnabelleError, ErrorBody, TooManyRequests

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AnnabelleError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_tells_its_sentence_code_and_hint_on_the_wire(kind: type[AnnabelleError]):
    body = kind("One sentence.", hint="Do this.").body("tr_x")
    assert body == ErrorBody(code=kind.code, message="One sentence.", hint="Do this.", trace_id="tr_x")
    assert 400 <= kind.http_status < 600
    assert kind.exit_code > 0


def test_no_two_kinds_share_a_code_unless_one_is_the_others_default():
    by_code: dict[str, list[type[AnnabelleError]]] = {}
    for kind in KINDS:
        by_code.setdefault(kind.code, []).append(kind)
    for shared in by_code.values():
        assert all(issubclass(kind, shared[0]) for kind in shared)


def test_the_drawing_names_every_kind():
    assert [kind.__name__ for kind in KINDS if kind.__name__ not in (errors.__doc__ or "")] == []


def test_a_refused_request_says_when_to_come_back():
    assert TooManyRequests("Slow down.", retry_after=3).retry_after == 3
