"""One managed server: started, asked for its tools, pinged, restarted, called and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from annabelle.core.errors import AnnabelleError, ErrorBody, OutcomeUnknown, RetryByModel, ServerDown
from annabelle.core.messages import now
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.catalogue import may_use
from annabelle.toolbox.config import ToolboxLimits
from annabelle.toolbox.external.pins import ServerHold
from annabelle.toolbox.manifest import ServerProfile
from annabelle.toolbox.mcp.connection import Connect, Connection, build_call_meta
from annabelle.toolbox.mcp.conversion import to_result, to_spec
from annabelle.toolbox.mcp.rpc import AnswerTooLarge, ConnectionLost, RpcError, WireError
from annabelle.toolbox.process.kernel import kill_tree
from annabelle.toolbox.status import ServerState, ServerStatus
from annabelle.toolbox.supervisor.restart_backoff import RestartBackoff

READINESS_TOOL = "readiness"
_CALLER = CallContext(caller="hub", user_id="owner")


def has_readiness_tool(specs: Iterable[ToolSpec]) -> bool:
    """Whether a server can say what it lacks. An external server's tool of that name does not count."""
    return any(spec.original_name == READINESS_TOOL and spec.audience == "hub" for spec in specs)


async def ask_what_is_missing(connection: Connection, seconds: float) -> str | None:
    """What the server lacks, in one sentence with the command that provides it; None if nothing."""
    try:
        async with asyncio.timeout(seconds):
            answer = await connection.call_tool(READINESS_TOOL, {}, build_call_meta(_CALLER, ours=True))
    except (TimeoutError, AnswerTooLarge, RpcError):
        return None
    structured = answer.result.get("structuredContent")
    missing = cast("JsonObject", structured).get("missing") if isinstance(structured, dict) else None
    return missing if isinstance(missing, str) and missing else None


_SHOWN_OF_PROFILE = ("name", "label", "group", "kind", "role", "sensitive", "scan", "timeout_seconds")


def make_status(profile: ServerProfile, state: ServerState, **more: object) -> ServerStatus:
    shown = {name: getattr(profile, name) for name in _SHOWN_OF_PROFILE}
    return ServerStatus.model_validate({**shown, "state": state, "available": state == "ready", **more})


_log = logging.getLogger(__name__)
_INVALID_PARAMS = -32602
_MAX_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class ServerListeners:
    """Callbacks: new tools, given up after too many restarts, held back, and every change of state."""

    on_tools: Callable[[ManagedServer, list[ToolSpec]], None]
    on_given_up: Callable[[ManagedServer], None]
    on_held: Callable[[ManagedServer, ServerHold], None]
    on_state: Callable[[str, ServerState], None]


Inspect = Callable[[Connection, list[JsonObject]], Awaitable[ServerHold | None]]
"""Checks a server and its tools before they are offered. Returns why they may not be, or None."""


class ServerHeldBack(Exception):
    """The inspection refused the server: it does not run until the person accepts it."""

    def __init__(self, hold: ServerHold) -> None:
        super().__init__(hold.sentence)
        self.hold = hold


class ManagedServer:
    """Serves calls through its current connection; callers do not notice a restart."""

    def __init__(
        self,
        profile: ServerProfile,
        connect: Connect,
        limits: ToolboxLimits,
        listeners: ServerListeners,
        result_max_bytes: int,
        inspect: Inspect | None = None,
    ) -> None:
        self.profile, self._inspect = profile, inspect
        self._connect, self._limits, self._listeners = connect, limits, listeners
        self._result_max_bytes = result_max_bytes
        self._backoff = RestartBackoff(
            limits.restart_base_seconds, limits.restart_cap_seconds, limits.max_restarts, limits.restart_window_seconds
        )
        self._connection: Connection | None = None
        self._changed = asyncio.Event()
        self._state_changed = asyncio.Condition()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._state: ServerState = "starting"
        self._restarts = self._missed = self._tools = 0
        self._started_at: datetime | None = None
        self._last_error: str | None = None
        self._asked_for_readiness = False
        self._missing: str | None = None
        self._restarting = asyncio.Lock()

    async def start(self) -> None:
        """Start, and return when the first attempt has succeeded or failed."""
        self._settled.clear()
        self._state = "starting"
        self._task = asyncio.create_task(self._run(), name=f"server-{self.profile.name}")
        await self._settled.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=self._limits.stop_grace_seconds * 2 + 5)
            self._task = None
        await self._set_state("stopped")

    async def restart(self) -> None:
        """Restart now, with a fresh backoff."""
        async with self._restarting:  # two at once would leave an orphan
            await self.stop()
            self._backoff.reset()
            self._restarts += 1
            await self.start()

    async def restart_if_hung(self) -> None:
        """Ping now and restart if there is no answer: a call has timed out."""
        connection = self._connection
        if connection is None:
            return
        try:
            async with asyncio.timeout(self._limits.ping_seconds):
                await connection.ping()
        except TimeoutError:
            if self._connection is connection:
                _log.warning("%s hangs and is restarted", self.profile.name)
                await self.restart()
        except WireError:
            pass  # it answered with an error, or has ended, which `_run` sees

    async def find_missing(self) -> str | None:
        """What it lacks, asked now, because it may just have been provided; else what it said last."""
        if (connection := self._connection) is not None:
            with contextlib.suppress(WireError):
                await self._check_what_is_missing(connection)
        return self._missing

    def status(self) -> ServerStatus:
        connection = self._connection
        return make_status(
            self.profile,
            self._state,
            tools=self._tools,
            pid=connection.pid if connection else None,
            restarts=self._restarts,
            missed_pings=self._missed,
            garbage_lines=connection.garbage_lines if connection else 0,
            protocol=connection.protocol if connection else None,
            started_at=self._started_at,
            last_error=self._last_error,
            missing=self._missing,
        )

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Call a tool. If the server dies meanwhile, a repeatable call is made again; others raise OutcomeUnknown."""
        repeated = False
        meta = build_call_meta(context, ours=self.profile.kind == "builtin")
        for _ in range(_MAX_ATTEMPTS):
            connection = self._connection if self._state == "ready" else None
            if connection is None:
                connection = await self._wait_until_ready()
            try:
                answer = await connection.call_tool(tool.original_name, arguments, meta)
            except ConnectionLost as lost:
                if lost.sent and not tool.annotations.repeatable:
                    raise OutcomeUnknown(
                        f"The server of {tool.name} ended while the call was under way ({lost.reason}).",
                        hint="Whether it took effect is not known; look before you repeat it.",
                    ) from lost
                if lost.sent and repeated:
                    raise ServerDown(f"The server of {tool.name} ended twice during the call: {lost.reason}.") from lost
                repeated = repeated or lost.sent
                await self._drop_connection(connection)
            except AnswerTooLarge as large:
                return ToolResult.failure(_too_large(tool, large))
            except RpcError as error:
                return ToolResult.failure(_refusal(tool, error))
            else:
                return to_result(
                    answer,
                    tool,
                    self._result_max_bytes,
                    labelled=self.profile.provenance,
                    ours=self.profile.kind == "builtin",
                )
        raise ServerDown(f"{self.profile.label} keeps ending before it can be called.", hint=self._last_error)

    async def kill_if_hung(self, seconds: float) -> bool:
        """Kill the process and its descendants if it does not answer a ping; `_run` restarts it."""
        connection = self._connection
        if connection is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await connection.ping()
        except (TimeoutError, AnswerTooLarge):
            _log.warning("%s does not answer and is killed", self.profile.name)
            if connection.pid is not None:
                kill_tree(connection.pid)
            return True
        except WireError:
            pass  # it answered with an error, or has just ended
        return False

    async def _wait_until_ready(self) -> Connection:
        def decided() -> bool:
            return self._state not in ("starting", "restarting")

        async with self._state_changed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.wait_for_restart_seconds):
                    await self._state_changed.wait_for(decided)
        if self._connection is None or self._state != "ready":
            raise ServerDown(f"{self.profile.label} is not running ({self._state}).", hint=self._last_error)
        return self._connection

    async def _drop_connection(self, connection: Connection) -> None:
        """Keep the next caller from using a broken connection."""
        if self._connection is connection and self._state == "ready":
            await self._set_state("restarting")

    async def _set_state(self, state: ServerState) -> None:
        async with self._state_changed:
            self._state = state
            self._state_changed.notify_all()
        self._listeners.on_state(self.profile.name, state)

    async def _run(self) -> None:
        try:
            while True:
                self._last_error = await self._run_once()
                wait = self._backoff.next_wait()
                if wait is None:
                    break
                await self._set_state("restarting")
                self._settled.set()
                _log.warning("%s: %s; restarting in %.1f s", self.profile.name, self._last_error, wait)
                await asyncio.sleep(wait)
                self._restarts += 1
            await self._set_state("down")
            _log.error("%s is given up after %d restarts: %s", self.profile.name, self._restarts, self._last_error)
            self._listeners.on_given_up(self)
        except ServerHeldBack as held:
            self._last_error = held.hold.sentence
            await self._set_state(held.hold.state)
            self._listeners.on_held(self, held.hold)
        finally:
            self._settled.set()

    async def _run_once(self) -> str:
        """Connect and serve until the connection ends. Returns the reason."""
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._limits.start_seconds):
                connection = await self._connect(self._changed.set)
                await self._load_tools(connection)
            await self._check_what_is_missing(connection)
            self._connection, self._started_at, self._missed = connection, now(), 0
            await self._set_state("ready")
            self._settled.set()
            reason = await self._serve(connection)
        except TimeoutError:
            reason = f"it did not list its tools within {self._limits.start_seconds:g} seconds"
        except ConnectionLost as lost:
            reason = lost.reason
        except (WireError, AnnabelleError, OSError) as error:
            reason = str(error)
        except ServerHeldBack:
            raise
        except Exception as error:  # noqa: BLE001  a foreign program: it must stay supervised
            _log.exception("%s provoked an unexpected error", self.profile.name)
            reason = f"unexpected {type(error).__name__}: {error}"
        finally:
            self._connection = None
            if self._state == "ready":
                self._state = "restarting"  # callers wait for the restart from here on
            if connection is not None:
                await _finish(connection.close(self._limits.stop_grace_seconds))
        return (connection.exit_reason if connection is not None else None) or reason

    async def _serve(self, connection: Connection) -> str:
        """Ping, and list tools again when they change, until the connection ends. Returns the reason."""
        ping_at = asyncio.get_running_loop().time() + self._limits.ping_every_seconds
        changed = asyncio.create_task(self._changed.wait())
        try:
            while True:
                left = max(0.0, ping_at - asyncio.get_running_loop().time())
                done, _ = await asyncio.wait(
                    [connection.ended, changed], timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                if connection.ended in done:
                    return connection.ended.result()
                if changed in done:
                    self._changed.clear()
                    changed = asyncio.create_task(self._changed.wait())
                    async with asyncio.timeout(self._limits.start_seconds):
                        await self._load_tools(connection)
                else:
                    ping_at = asyncio.get_running_loop().time() + self._limits.ping_every_seconds
                    if not await self._ping(connection):
                        return f"it missed {self._missed} health checks in a row"
                    await self._check_what_is_missing(connection)
        finally:
            changed.cancel()

    async def _ping(self, connection: Connection) -> bool:
        try:
            async with asyncio.timeout(self._limits.ping_seconds):
                await connection.ping()
        except (TimeoutError, AnswerTooLarge):
            self._missed += 1
            _log.warning("%s missed health check %d", self.profile.name, self._missed)
            return self._missed < self._limits.pings_missed
        except RpcError:
            pass  # an error is an answer too
        self._missed = 0
        return True

    async def _check_what_is_missing(self, connection: Connection) -> None:
        if self._asked_for_readiness:
            self._missing = await ask_what_is_missing(connection, self._limits.ping_seconds)

    async def _load_tools(self, connection: Connection) -> None:
        listed = await connection.list_tools()
        hold = None if self._inspect is None else await self._inspect(connection, listed)
        if hold is not None:
            raise ServerHeldBack(hold)
        specs = [spec for spec in (to_spec(self.profile, tool) for tool in listed) if spec is not None]
        self._tools = sum(may_use("agent", spec) for spec in specs)  # those a model can see
        self._asked_for_readiness = has_readiness_tool(specs)
        self._listeners.on_tools(self, specs)


async def _finish(closing: Coroutine[object, object, None]) -> None:
    """Finish closing even if the caller is cancelled: a half-closed server is an orphan."""
    task = asyncio.create_task(closing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=15)
        raise


def _too_large(tool: ToolSpec, error: AnswerTooLarge) -> ErrorBody:
    return RetryByModel(
        f"The result of {tool.name} was too large: {error.size} bytes, and at most {error.limit} are read.",
        hint="It ran; ask for less: a filter, a range or a smaller limit.",
    ).body()


def _refusal(tool: ToolSpec, error: RpcError) -> ErrorBody:
    code = "invalid_arguments" if error.code == _INVALID_PARAMS else "tool_failed"
    return ErrorBody(code=code, message=f"{tool.name} failed: {error.message or 'no reason given'} ({error.code}).")
