"""The calculate tool: an embedded interpreter without files, network or processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import Field

from annabelle.core.errors import InvalidArguments, RetryByModel, TooLarge, Unavailable
from annabelle.servers.codexec.execution import shorten_middle
from annabelle.servers.kit import Result, deferred_module, tool

if TYPE_CHECKING:
    import pydantic_monty as monty
else:
    monty = deferred_module("pydantic_monty")


_SECONDS = 5.0
_MEMORY_BYTES = 64_000_000
_PRINTED_BYTES = 100_000
_SHOWN_CHARS = 10_000


class CalculationResult(Result):
    """What a calculation came to."""

    value: str | None = Field(default=None, description="Value of the last expression")
    type: str | None = Field(default=None, description="Its type")
    printed: str = Field(default="", description="What it printed")

    def to_text(self) -> str:
        parts = [self.printed.rstrip("\n"), self.value]
        return "\n".join(part for part in parts if part) or "[no value]"


class CalculateTool:
    def __init__(self) -> None:
        self._pool: monty.AsyncMonty | None = None
        self._lock = asyncio.Lock()

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def calculate(
        self,
        code: Annotated[
            str,
            Field(min_length=1, max_length=100_000, description="A Python expression, or a few lines ending in one"),
        ],
    ) -> CalculationResult:
        """Calculate something exactly with a small Python: arithmetic, math, dates, decimal, text. Quick and always
        there, but without files, network and most of the standard library; use execute_code for more."""
        pool = await self._ready()
        printed = monty.CollectString(max_bytes=_PRINTED_BYTES)
        limits: monty.ResourceLimits = {"max_feed_duration_secs": _SECONDS, "max_memory": _MEMORY_BYTES}
        try:
            async with asyncio.timeout(_SECONDS * 3), pool.checkout(limits=limits) as session:
                value = cast("object", await session.feed_run(code, print_callback=printed))
            shown = None if value is None else _show_value(value)
        except (monty.MontySyntaxError, monty.MontyRuntimeError) as error:
            raise _to_error(error) from error
        except (monty.MontyError, TimeoutError) as error:
            raise RetryByModel("The calculation was stopped: it needs too much.", hint="Make it smaller.") from error
        except (ValueError, RecursionError) as error:  # too many digits, or nested too deeply
            raise TooLarge("The result is too long to be shown.", hint="Ask for a part of it.") from error
        kind = None if value is None else type(value).__name__
        return CalculationResult(value=shown, type=kind, printed=shorten_middle(printed.output, _SHOWN_CHARS))

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _ready(self) -> monty.AsyncMonty:
        """Start the interpreter process at the first calculation and keep it."""
        async with self._lock:
            if self._pool is None:
                pool = monty.AsyncMonty(max_processes=2, checkout_timeout=_SECONDS * 3, request_timeout=_SECONDS * 2)
                try:
                    self._pool = await pool.__aenter__()
                except (OSError, RuntimeError) as error:
                    raise Unavailable(
                        "The calculator could not be started.", hint="Reinstall the package pydantic-monty."
                    ) from error
            return self._pool


def _show_value(value: object) -> str:
    return shorten_middle(value if isinstance(value, str) else repr(value), _SHOWN_CHARS)


def _to_error(error: monty.MontySyntaxError | monty.MontyRuntimeError) -> RetryByModel | InvalidArguments:
    form: Literal["type-msg"] = "type-msg"
    said = shorten_middle(error.display(form), 500)
    if isinstance(error, monty.MontySyntaxError):
        return InvalidArguments(f"That is not valid Python: {said}.", field="code")
    missing = "ModuleNotFoundError" in said or "not supported" in said
    hint = "execute_code has all of Python." if missing else "Correct the code and calculate again."
    return RetryByModel(f"The calculation failed: {said}.", hint=hint)
