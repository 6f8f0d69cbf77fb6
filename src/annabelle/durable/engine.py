"""Everything that knows DBOS from the inside, in one file; the version is pinned for its sake."""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, SetWorkflowID
from dbos._context import _dbos_context_var, get_local_dbos_context
from dbos._error import DBOSConflictingWorkflowError, DBOSException
from dbos._queue import Queue
from dbos._sys_db import SystemDatabase
from dbos._utils import INTERNAL_QUEUE_NAME

from annabelle.core.tools import JsonObject
from annabelle.durable.book import Book, Execution
from annabelle.durable.quiet import quiet_engine_log
from annabelle.durable.serializer import JsonSerializer
from annabelle.durable.shortcuts import take_shortcuts

AlreadyAnotherWorkflow = DBOSConflictingWorkflowError
EngineError = DBOSException
"""What the engine raises to control a workflow from outside: it must pass through a workflow's body untouched."""

Body = Callable[[JsonObject], Awaitable[JsonObject]]

RECOVERY_POLL_SECONDS: Final = 0.05
IDLE_POLL_SECONDS: Final = 5.0
THREAD_EXIT_SECONDS: Final = 0.25
WORKER_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this process is to the engine. All of it must stay the same over restarts, or nothing is recovered."""

    name: str
    executor_id: str
    application_version: str
    schema: str


def _nothing(*_args: object, **_names: object) -> list[str]:
    return []


class Engine:
    """DBOS, started and stopped, with the few verbs the rest of this room is made from. Methods block unless async."""

    def __init__(self, identity: Identity, database: sa.Engine) -> None:
        self._identity, self._database = identity, database
        self._workflows: dict[str, Body] = {}
        self._dbos: DBOS | None = None
        self._book: Book | None = None
        self._serializer = JsonSerializer()

    def register(self, name: str, body: Body) -> None:
        """Make a workflow known; only before launch, or its pending runs would not be recovered."""
        if self._dbos is not None:
            raise RuntimeError(f"The workflow {name} was registered after the launch.")
        if name in self._workflows:
            raise RuntimeError(f"The workflow {name} is registered twice.")
        self._workflows[name] = body

    def launch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the engine; workflows that were pending continue on the given loop."""
        quiet_engine_log()
        config: DBOSConfig = {
            "name": self._identity.name,
            "executor_id": self._identity.executor_id,
            "application_version": self._identity.application_version,
            "system_database_engine": self._database,
            "dbos_system_schema": self._identity.schema,
            "serializer": self._serializer,
            "enable_otlp": False,
            "log_level": "WARNING",
            "max_executor_threads": WORKER_THREADS,
            "notification_listener_polling_interval_sec": THREAD_EXIT_SECONDS,
            "notification_coalesce_sec": THREAD_EXIT_SECONDS,
        }
        dbos = DBOS(config=config)
        try:
            self._workflows = {name: self._registered(name, body) for name, body in self._workflows.items()}
            # Launched from a worker thread, so the engine can not find the loop by itself.
            dbos._background_event_loop._main_loop = loop
            self._poll_every(dbos, RECOVERY_POLL_SECONDS)
            DBOS.launch()
        except BaseException:
            DBOS.destroy(destroy_registry=True)
            raise
        # We use none of the engine's queues, delays and deadlines, so it need not look for them every second.
        system = dbos._sys_db
        for unused in ("list_queues", "transition_delayed_workflows", "cancel_timed_out_workflows"):
            setattr(system, unused, _nothing)
        take_shortcuts(system)
        self._book = Book(system.engine, self._identity.name, self._serializer)
        self._dbos = dbos

    @property
    def book(self) -> Book:
        assert self._book is not None, "the book is opened at the launch"
        return self._book

    @staticmethod
    def _registered(name: str, body: Body) -> Body:
        # Without a limit on recoveries: a turn that many crashes hit is still owed an answer.
        decorate = cast("Callable[[Body], Body]", DBOS.workflow(name=name, max_recovery_attempts=None))
        return decorate(body)

    @staticmethod
    def _poll_every(dbos: DBOS, seconds: float) -> None:
        queue: Queue = dbos._registry.get_internal_queue()
        queue._polling_interval_sec = seconds

    def settle(self) -> None:
        """Look for recovered workflows seldom from now on: only an interrupted one still comes through the queue."""
        self._poll_every(self._running(), IDLE_POLL_SECONDS)

    def requeue(self, workflow_id: str) -> None:
        """Run a pending workflow of this process again, from its record."""
        self._system().reenqueue_for_recovery(workflow_id, [self._identity.executor_id], INTERNAL_QUEUE_NAME)

    def destroy(self) -> bool:
        """Stop every thread of the engine. What has not finished stays pending for the next launch. Whether it ran."""
        if self._dbos is None:
            return False
        self._dbos = None
        DBOS.destroy(destroy_registry=True)
        return True

    def tasks(self) -> set[asyncio.Task[object]]:
        return set(self._running()._workflow_tasks)

    async def start(self, name: str, workflow_id: str, argument: JsonObject) -> None:
        """Begin a workflow unless one of this id was begun before; run it in a context of its own."""
        # A workflow that starts another does not become its parent: ids alone make starts idempotent.
        _dbos_context_var.set(None)
        with SetWorkflowID(workflow_id):
            await DBOS.start_workflow_async(self._workflows[name], argument)  # pyright: ignore[reportArgumentType]

    def execution(self) -> Execution:
        """The execution that the calling workflow body belongs to."""
        context = get_local_dbos_context()
        assert context is not None, "a workflow body runs in the engine's context"
        assert context.owner_xid is not None, "the engine gives every execution a token"
        return Execution(context.workflow_id, context.owner_xid)

    async def receive(self, topic: str, timeout: float) -> object:
        return await DBOS.recv_async(topic, timeout)

    async def send(self, workflow_id: str, topic: str, payload: object) -> None:
        await DBOS.send_async(workflow_id, payload, topic)
        # One process owns the file, so whoever waits is here and need not wait for the next poll.
        waiting = self._system().notifications_map.get(f"{workflow_id}::{topic}")
        if waiting is not None:
            waiting.set()

    def cancel(self, workflow_id: str) -> None:
        self._system().cancel_workflows([workflow_id])

    def forget(self, before: datetime, at_most: int) -> None:
        """Delete workflows that ended before a time, with their steps."""
        ended = self.book.ended(before, at_most)
        if ended:
            self._system().delete_workflows(ended)

    def _running(self) -> DBOS:
        if self._dbos is None:
            raise RuntimeError("The durable engine is not running.")
        return self._dbos

    def _system(self) -> SystemDatabase:
        return self._running()._sys_db
