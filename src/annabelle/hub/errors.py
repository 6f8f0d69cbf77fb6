"""One function turns every error into HTTP: `{"error": {code, message, hint, trace_id}}` (API-04)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from http import HTTPStatus
from typing import cast

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from annabelle.core.errors import AnnabelleError, ErrorBody, InvalidArguments, TooManyRequests

_CODES = {404: "not_found", 405: "method_not_allowed", 400: "bad_request"}
_SENTENCES = {
    404: "There is nothing at this address.",
    405: "This address does not answer that method.",
    400: "The request could not be read.",
}


class ErrorAnswer(BaseModel):
    """What every failed request answers."""

    error: ErrorBody


def answer(error: Exception, trace_id: str | None) -> Response:
    """The response for an error; an unknown one tells nothing of the inside but its trace id."""
    headers: dict[str, str] = {}
    if isinstance(error, AnnabelleError):
        status, body = error.http_status, error.body(trace_id)
        if isinstance(error, TooManyRequests):
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    elif isinstance(error, HTTPException):
        status = error.status_code
        code = _CODES.get(status, HTTPStatus(status).name.lower())
        body = ErrorBody(code=code, message=_SENTENCES.get(status, f"{error.detail}."), trace_id=trace_id)
        headers.update(error.headers or {})
    else:
        status = 500
        body = ErrorBody(
            code="internal_error",
            message="Something went wrong inside Annabelle.",
            hint="Look for the trace id in the logs: annabelle trace shows what happened.",
            trace_id=trace_id,
        )
    return Response(ErrorAnswer(error=body).model_dump_json(), status, headers, media_type="application/json")


def invalid(error: ValidationError | Sequence[object]) -> InvalidArguments:
    """The first fault of a request that does not fit its schema, with the field's name and never its value."""
    faults = error.errors(include_url=False, include_input=False) if isinstance(error, ValidationError) else error
    first = cast("dict[str, object]", faults[0])
    place = [str(part) for part in cast("Sequence[object]", first["loc"]) if part not in ("body", "query", "path")]
    field = ".".join(place) or None
    reason = str(first["msg"])
    if first["type"] == "json_invalid":
        return InvalidArguments(f"The body is not valid JSON: {reason}.")
    return InvalidArguments(f"{field or 'The body'} is not valid: {reason}.", field=field)
