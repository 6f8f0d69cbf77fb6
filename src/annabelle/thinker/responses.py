"""Answers of the thinker's endpoints: models as JSON, errors in the one shape every wire has."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from annabelle.core.contract import TRACE_HEADER
from annabelle.core.errors import AnnabelleError, InvalidArguments, TooLarge
from annabelle.core.trace import current_trace


def model_response(model: BaseModel, status: int = 200) -> Response:
    return Response(model.model_dump_json(), status_code=status, media_type="application/json", headers=_trace())


def error_response(error: AnnabelleError) -> Response:
    body = error.body(current_trace()).model_dump(exclude_none=True)
    return JSONResponse({"error": body}, status_code=error.http_status, headers=_trace())


async def body_of(request: Request, most: int) -> bytes:
    """The request's body, refused as soon as it grows too large."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise TooLarge(f"The body is larger than {most} bytes.")
        chunks.append(chunk)
    return b"".join(chunks)


def number_of(request: Request, name: str, most: float) -> float:
    """A query parameter that is a number from 0 to `most`; absent means 0."""
    text = request.query_params.get(name, "0")
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise InvalidArguments(f"{name} must be a number from 0 to {most:g}.", field=name)
    return number


def _trace() -> dict[str, str]:
    trace = current_trace()
    return {TRACE_HEADER: trace} if trace else {}
