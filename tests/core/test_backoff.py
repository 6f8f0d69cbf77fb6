"""Waits that double up to a cap, and the first problem of a ValidationError."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from annabelle.core.backoff import backoff_seconds
from annabelle.core.errors import first_problem


def test_waits_double_up_to_the_cap_however_often_it_failed() -> None:
    assert [backoff_seconds(failed, 0.5, 30) for failed in (1, 2, 3, 7, 5_000)] == [0.5, 1, 2, 30, 30]


def test_jitter_spreads_a_wait_and_never_beyond_the_cap() -> None:
    waits = {backoff_seconds(2, 1, 2.2, 0.25) for _ in range(200)}
    assert len(waits) > 50
    assert 1.5 <= min(waits) < max(waits) <= 2.2


class _Cup(BaseModel):
    size: int = 1

    @field_validator("size")
    @classmethod
    def _check(cls, size: int) -> int:
        if size < 0:
            raise ValueError("a cup holds something")
        return size


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ('{"size": -1}', "size", "a cup holds something"),
        ('"sk-secret"', "the cup", "Input should be an object"),
    ],
)
def test_the_first_problem_names_the_field_and_not_the_value(text: str, field: str, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Cup.model_validate_json(text)
    assert first_problem(caught.value, "the cup") == (field, reason)
