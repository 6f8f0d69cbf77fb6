"""All errors, named after who has to act next.

AnnabelleError
├── OperatorMistake            the person who runs Annabelle: settings, files, ports            exit 2 · HTTP 500
│   └── ConfigMistake            a file or setting is wrong; names file, field and reason
├── CallerMistake              the sender of the request                                         HTTP 400
│   ├── InvalidArguments         names the field                                                 HTTP 422
│   ├── Unauthorized             no or wrong token                                               HTTP 401
│   ├── NotAllowed               known, but not permitted (policy, Host, Origin)                 HTTP 403
│   │   └── SecurityBlocked        the guardian found a threat in it                             HTTP 403
│   │       └── ScannerDown          it could not scan, so nothing passes                        HTTP 503
│   ├── NotFound                                                                                 HTTP 404
│   │   └── UnknownTool            carries the closest names
│   │       └── SwitchedOff          its server is switched off; says how to turn it on
│   ├── Conflict                                                                                 HTTP 409
│   ├── TooLarge                                                                                 HTTP 413
│   └── TooManyRequests          rate limit or full queue; carries retry_after                   HTTP 429
├── RetryByModel               the model: call again differently; shown to it as a tool result   HTTP 422
├── Unavailable                wait or retry: a part is down for now                             HTTP 503
│   ├── AgentPaused              resume it
│   │   └── AgentStopped           its owner stopped it
│   ├── ServerDown               an MCP server is not running; nothing was sent
│   └── HubUnreachable
├── ToolTimeout                the tool did not answer in time                                   HTTP 504
├── OutcomeUnknown             the person: a call may or may not have happened (DUR-03)          HTTP 502
├── ProviderTrouble            the provider; `retry` tells how often to try again                HTTP 502
│   ├── ProviderRateLimited      5 retries
│   ├── ProviderDown             network, timeout, 5xx: 3 retries
│   ├── ProviderRefused          key, model or request is wrong: no retry helps
│   │   └── ModelTooSmall          the operator: it takes another model
│   └── ProviderFailed           anything else: 2 retries
├── StorageTrouble             the operator: disk full, database damaged, file locked            exit 3 · HTTP 507
│   └── AlreadyRunning           another process owns this home or file                          exit 4
└── TurnCancelled              no action: the user stopped it
"""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar, Literal

from pydantic import BaseModel, ValidationError

RetryClass = Literal["rate_limit", "network", "other", "none"]


class ErrorBody(BaseModel):
    """What an error looks like on every wire: `{"error": {…}}` around this."""

    code: str
    message: str
    hint: str | None = None
    trace_id: str | None = None
    field: str | None = None
    attempts: int | None = None
    """How often it was tried before it was given up, if more than once."""

    @property
    def for_person(self) -> str:
        """In words. A hint how to call again, or one that names a tool or an argument, is for the model."""
        message, hint = self.message, self.hint or ""
        if self.field:
            message = message.replace(self.field, self.field.replace("_", " "))
        return message if self.code == RetryByModel.code or "_" in hint else f"{message} {hint}".rstrip()


class AnnabelleError(Exception):
    """Base of all errors: one clear sentence, a stable code, and a hint what to do."""

    code: ClassVar[str] = "internal_error"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retry: ClassVar[RetryClass] = "none"

    def __init__(self, message: str, *, hint: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field
        self.next_try: float | None = None
        """Seconds before which another try cannot help, if known."""
        self.attempts: int | None = None
        """How often it was tried before it was given up."""

    def body(self, trace_id: str | None = None) -> ErrorBody:
        return ErrorBody(
            code=self.code,
            message=self.message,
            hint=self.hint,
            trace_id=trace_id,
            field=self.field,
            attempts=self.attempts,
        )


class OperatorMistake(AnnabelleError):
    code, exit_code = "operator_mistake", 2


class ConfigMistake(OperatorMistake):
    code = "bad_config"


class CallerMistake(AnnabelleError):
    code, http_status, exit_code = "bad_request", 400, 2


class InvalidArguments(CallerMistake):
    code, http_status = "invalid_arguments", 422


class Unauthorized(CallerMistake):
    code, http_status = "unauthorized", 401


class NotAllowed(CallerMistake):
    code, http_status = "not_allowed", 403


class SecurityBlocked(NotAllowed):
    code = "security_blocked"


class ScannerDown(SecurityBlocked):
    code, http_status = "scanner_down", 503


class NotFound(CallerMistake):
    code, http_status = "not_found", 404


class UnknownTool(NotFound):
    code = "unknown_tool"


class SwitchedOff(UnknownTool):
    """The tool is there, but its server is disabled by a setting."""


class Conflict(CallerMistake):
    code, http_status = "conflict", 409


class TooLarge(CallerMistake):
    code, http_status = "too_large", 413


class TooManyRequests(CallerMistake):
    code, http_status = "too_many_requests", 429

    def __init__(self, message: str, *, hint: str | None = None, retry_after: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class RetryByModel(AnnabelleError):
    code, http_status = "retry", 422


class Unavailable(AnnabelleError):
    code, http_status = "unavailable", 503


class AgentPaused(Unavailable):
    code = "agent_paused"


class AgentStopped(AgentPaused):
    code = "agent_stopped"


class ServerDown(Unavailable):
    code = "server_down"


class HubUnreachable(Unavailable):
    code, exit_code = "hub_unreachable", 5


class ToolTimeout(AnnabelleError):
    code, http_status = "tool_timeout", 504


class OutcomeUnknown(AnnabelleError):
    code, http_status = "outcome_unknown", 502


class ProviderTrouble(AnnabelleError):
    code, http_status = "provider_failed", 502


class ProviderRateLimited(ProviderTrouble):
    code = "provider_rate_limited"
    retry: ClassVar[RetryClass] = "rate_limit"


class ProviderDown(ProviderTrouble):
    code = "provider_down"
    retry: ClassVar[RetryClass] = "network"


class ProviderRefused(ProviderTrouble):
    code = "provider_refused"


class ModelTooSmall(ProviderRefused):
    code = "model_too_small"


class ProviderFailed(ProviderTrouble):
    retry: ClassVar[RetryClass] = "other"


class StorageTrouble(AnnabelleError):
    code, http_status, exit_code = "storage_trouble", 507, 3


class AlreadyRunning(StorageTrouble):
    code, exit_code = "already_running", 4


class TurnCancelled(AnnabelleError):
    code, http_status = "cancelled", 409


MORE_MEMORY = "Close other programs, or raise the limit: ulimit -v and ulimit -u, or that of the container."
_OUT_OF_MEMORY = ("can't start new thread", "failed to map segment", "annot allocate memory")


def explain_shortage(error: Exception) -> AnnabelleError | None:
    """What the machine ran short of, in a sentence; None if the error is about something else."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StorageTrouble("The disk is full.", hint="Free some space; nothing is lost.")
    if isinstance(error, MemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY):
        return OperatorMistake("Annabelle gets too little memory here, or too few threads.", hint=MORE_MEMORY)
    return None


@contextmanager
def explain_os_error(kind: type[AnnabelleError], what: str, *, hint: str | None = None) -> Generator[None]:
    """Raises `kind` for an OSError, as a sentence: `what` failed, and the system's reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}.", hint=hint) from error


def first_problem(error: ValidationError, whole: str = "") -> tuple[str, str]:
    """Returns the field of the first error (`whole` if it has no single field) and the problem, never the value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(str(part) for part in first["loc"]) or whole, first["msg"].removeprefix("Value error, ")


def error_from(body: ErrorBody) -> AnnabelleError:
    """Rebuild the error of a body, so that its HTTP status and exit code are right."""
    kind = {kind.code: kind for kind in reversed(_kinds(AnnabelleError))}.get(body.code, AnnabelleError)
    if issubclass(kind, TooManyRequests):
        return kind(body.message, hint=body.hint)
    return kind(body.message, hint=body.hint, field=body.field)


def _kinds(kind: type[AnnabelleError]) -> list[type[AnnabelleError]]:
    return [kind, *(inner for child in kind.__subclasses__() for inner in _kinds(child))]


UNRETRYABLE = frozenset(
    {
        ProviderRefused.code,
        ModelTooSmall.code,
        ConfigMistake.code,
        AgentPaused.code,
        AgentStopped.code,
        TurnCancelled.code,
        SecurityBlocked.code,
    }
)
"""Codes of errors that come again if the same is tried again, until somebody does something about it."""
