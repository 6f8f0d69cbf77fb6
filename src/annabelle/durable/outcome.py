"""How a step or a workflow ended, as JSON, and back: an error keeps its class across a crash."""

from __future__ import annotations

from functools import cache
from typing import cast

from annabelle.core.errors import AnnabelleError, ErrorBody, TooManyRequests
from annabelle.core.tools import JsonObject

OK, ERROR, NEXT_TRY = "ok", "error", "next_try"


def success(value: object) -> JsonObject:
    return {OK: value}


def failure(error: AnnabelleError) -> JsonObject:
    later: JsonObject = {} if error.next_try is None else {NEXT_TRY: error.next_try}
    return {ERROR: error.body().model_dump(exclude_none=True), **later}


def unwrap(outcome: JsonObject) -> object:
    """The value, or the error raised again as what it was."""
    if ERROR in outcome:
        error = revive(ErrorBody.model_validate(outcome[ERROR]))
        error.next_try = cast("float | None", outcome.get(NEXT_TRY))
        raise error
    return outcome[OK]


def revive(body: ErrorBody) -> AnnabelleError:
    """The error a body was made from."""
    kind = _classes().get(body.code, AnnabelleError)
    if issubclass(kind, TooManyRequests):
        return kind(body.message, hint=body.hint)
    return kind(body.message, hint=body.hint, field=body.field)


def _speaks_for_its_code(kind: type[AnnabelleError]) -> bool:
    return kind.__module__ == AnnabelleError.__module__ or "code" in vars(kind)


@cache
def _classes() -> dict[str, type[AnnabelleError]]:
    found: dict[str, type[AnnabelleError]] = {}
    level: list[type[AnnabelleError]] = [AnnabelleError]
    while level:
        # Deeper classes come later and win: a class that keeps its parent's code says more than the parent.
        # Only where the tree of errors is drawn, though: elsewhere it is one room's own, made in its own way.
        found.update({kind.code: kind for kind in level if _speaks_for_its_code(kind)})
        level = [child for kind in level for child in kind.__subclasses__()]
    return found
