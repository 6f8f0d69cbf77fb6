"""Shared by all endpoints: OpenAPI documentation, request body, caller and hub."""

from __future__ import annotations

from typing import Annotated, Self, TypedDict, TypeVar, cast

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, ValidationError

from annabelle.core.models import CamelModel
from annabelle.core.tools import JsonObject
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.security.request_guard import ErrorAnswer, validation_error

B = TypeVar("B", bound=BaseModel)
# Keeps malformed ids out of queries.
ID_SHAPE = r"^[A-Za-z0-9_-]{1,100}$"
Responses = dict[int | str, dict[str, object]]

_MEANINGS = {
    400: "The request does not fit its schema, or asks for something that is not done here",
    401: "No token, or a wrong one",
    403: "Known, but not permitted: policy, Host or Origin",
    404: "There is no such thing",
    409: "It does not fit what is there",
    413: "The request body is too large",
    422: "The request does not fit its schema; the field is named",
    429: "Too many requests, or the queue is full; Retry-After says when to come back",
    500: "A mistake inside Annabelle; the trace id finds it in the logs",
    502: "It is not known whether the call took effect",
    503: "Not available now; try again",
    504: "The tool did not answer in time",
    507: "The disk is full or a database is damaged",
}
_COMPONENTS = "#/components/schemas/"
_ALWAYS = (401, 403, 413, 422, 429, 500, 503, 507)


class ApiAnswer(CamelModel):
    """What an operation answers."""

    @classmethod
    def from_row(cls, row: object, **more: object) -> Self:
        """Takes the fields of the same name from `row`; `more` are those it lacks or has under another name."""
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)} | more)


class ApiBody(CamelModel):
    """An unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class ApiRouter(APIRouter):
    """The operation id is the name of the function."""

    def __init__(self, tag: str) -> None:
        def function_name(route: APIRoute) -> str:
            return route.name

        super().__init__(tags=[tag], generate_unique_id_function=function_name)


class OperationDocs(TypedDict):
    """Arguments of a route decorator."""

    summary: str
    responses: Responses
    openapi_extra: dict[str, object] | None


def document(
    summary: str,
    *errors: int,
    body: type[BaseModel] | None = None,
    body_required: bool = False,
    more: Responses | None = None,
) -> OperationDocs:
    """Documents an operation: the common errors and `errors`, its body, and `more` responses.

    The body is read with `read_body`, which is faster and stricter than FastAPI. It is required when one of its fields
    is, or with `body_required`. Errors refer to one schema. With a model, FastAPI would build a validator for each
    error of each operation, which took a tenth of the start-up time.
    """
    content = {"application/json": {"schema": {"$ref": f"{_COMPONENTS}{ErrorAnswer.__name__}"}}}
    responses: Responses = {
        status: {"content": content, "description": _MEANINGS[status]} for status in sorted({*_ALWAYS, *errors})
    }
    if body is not None:
        body_required = body_required or any(field.is_required() for field in body.model_fields.values())
    return {
        "summary": summary,
        "responses": responses | (more or {}),
        "openapi_extra": None if body is None else _document_body(body, required=body_required),
    }


def error_schemas() -> JsonObject:
    schema = cast(
        "JsonObject", ErrorAnswer.model_json_schema(mode="serialization", ref_template=_COMPONENTS + "{model}")
    )
    parts = cast("JsonObject", schema.pop("$defs", {}))
    return {**parts, ErrorAnswer.__name__: schema}


def _document_body(model: type[BaseModel], *, required: bool) -> dict[str, object]:
    schema = cast("JsonObject", model.model_json_schema(by_alias=True))
    # Inlined, because OpenAPI references cannot reach `$defs` inside a body's schema.
    schema = cast("JsonObject", _inlined(schema, cast("JsonObject", schema.pop("$defs", {}))))
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def _inlined(schema: object, parts: JsonObject) -> object:
    if isinstance(schema, list):
        return [_inlined(one, parts) for one in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = cast("JsonObject", schema)
    reference = fields.get("$ref")
    if isinstance(reference, str):
        return _inlined(parts[reference.rpartition("/")[2]], parts)
    return {name: _inlined(value, parts) for name, value in fields.items()}


async def read_body(request: Request, model: type[B]) -> B:
    """The validated body. An empty body counts as an empty object."""
    blob = await request.body()
    try:
        return model.model_validate_json(blob or b"{}")
    except ValidationError as error:
        raise validation_error(error) from error


async def _hub(request: Request) -> HubContext:
    return cast("HubContext", request.app.state.hub)


async def _identity(request: Request) -> CallerIdentity:
    return cast("CallerIdentity", request.state.identity)


TheHub = Annotated[HubContext, Depends(_hub)]
Caller = Annotated[CallerIdentity, Depends(_identity)]
