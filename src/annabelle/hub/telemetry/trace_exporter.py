"""Exports traces while they are written, to an OpenTelemetry collector or a file (TRC-02).

It follows the trace file, to which every process writes, so nothing that is traced waits for it. What cannot be sent
is kept up to a limit, then dropped and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

import httpx2 as httpx

from annabelle.core.background import BackgroundTasks
from annabelle.core.backoff import backoff_seconds
from annabelle.core.errors import ConfigMistake
from annabelle.core.ids import new_id
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace_export import OtlpEncoder, TraceSpan, group_by_component, parse_span

_log = logging.getLogger(__name__)
POLL_SECONDS: Final = 1.0
MOST_WAITING: Final = 5_000
_BATCH: Final = 500
_SEND_SECONDS: Final = 10.0
_LAST_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 1.0
_RETRY_CAP_SECONDS: Final = 60.0
_READ_BYTES: Final = 4_000_000
_FILE_BYTES: Final = 50_000_000
# The codes after which the protocol lets a client try again.
_RETRYABLE: Final = frozenset({429, 502, 503, 504})
_PATH: Final = "/v1/traces"


class TraceFollower:
    """Reads what is added to the trace file, also across its rotation."""

    def __init__(self, path: Path) -> None:
        self._path, self._rest = path, b""
        self._file = self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def read_new(self) -> list[JsonObject]:
        """The records since the last time."""
        if self._file is None:
            self._file = self._open()
        if self._file is None:
            return []
        added = self._file.read(_READ_BYTES)
        if not added and self._was_replaced():
            self._file.close()
            self._file, self._rest = self._open(), b""
            added = b"" if self._file is None else self._file.read(_READ_BYTES)
        *lines, self._rest = (self._rest + added).split(b"\n")
        return [record for line in lines if (record := _parse_line(line)) is not None]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb", buffering=0)
        except OSError:
            return None

    def _was_replaced(self) -> bool:
        assert self._file is not None
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except OSError:
            return False  # rotated, and nothing was written since


def _parse_line(line: bytes) -> JsonObject | None:
    with contextlib.suppress(ValueError):
        record: object = json.loads(line)
        if isinstance(record, dict):
            return cast("JsonObject", record)
    return None


class SpanContent(Protocol):
    """Looks up what was said in a span, in the words of the conventions."""

    async def describe(self, span: TraceSpan) -> JsonObject: ...


class RefusedExport(Exception):
    """The collector does not take it, and never will."""


class SpanSink(Protocol):
    """Takes the body of an export request. Raises RefusedExport, or OSError or an HTTP error if it may be repeated."""

    async def send(self, body: JsonObject) -> None: ...

    async def close(self) -> None: ...


class OtlpHttpSink:
    def __init__(self, endpoint: str, headers: dict[str, str]) -> None:
        self._url = endpoint.rstrip("/") if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._http = httpx.AsyncClient(headers=headers, timeout=_SEND_SECONDS)

    async def send(self, body: JsonObject) -> None:
        answer = await self._http.post(self._url, json=body)
        if answer.is_error and answer.status_code not in _RETRYABLE:
            raise RefusedExport(f"it answered {answer.status_code}")
        answer.raise_for_status()

    async def close(self) -> None:
        await self._http.aclose()


class OtlpFileSink:
    def __init__(self, path: Path) -> None:
        self._path = path

    async def send(self, body: JsonObject) -> None:
        await asyncio.to_thread(self._append, f"{json.dumps(body, ensure_ascii=False)}\n".encode(errors="replace"))

    async def close(self) -> None: ...

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(line)
            full = file.tell() > _FILE_BYTES
        if full:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """Where spans go. `content` is set if what was said goes along."""

    sink: SpanSink
    content: SpanContent | None = None


class TraceExporter:
    def __init__(self, traces: Path, redact: Redactor, target: ExportTarget) -> None:
        self._traces, self._redact, self._target = traces, redact, target
        self._encoder = OtlpEncoder(content=target.content is not None, seed=new_id("otel"))
        self._waiting: deque[tuple[str, JsonObject]] = deque(maxlen=MOST_WAITING)
        self._added, self._work = asyncio.Event(), BackgroundTasks()
        self._follower: TraceFollower | None = None
        self._failing = False
        self.dropped = 0
        """How many spans were given up."""

    async def start(self) -> None:
        self._follower = await asyncio.to_thread(TraceFollower, self._traces)
        self._work.start(self._read())
        self._work.start(self._send())

    async def stop(self) -> None:
        """Send what is left, if that is quick."""
        await self._work.stop()
        if self._follower is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self._take_new(self._follower)
                while self._waiting and await self._try_send():
                    pass
        self._follower.close()
        await self._target.sink.close()

    async def _read(self) -> None:
        assert self._follower is not None
        while True:
            try:
                await self._take_new(self._follower)
            except Exception:  # noqa: BLE001  one odd record must not end the export
                _log.exception("Some traces could not be exported")
            await asyncio.sleep(POLL_SECONDS)

    async def _take_new(self, follower: TraceFollower) -> None:
        for record in await asyncio.to_thread(follower.read_new):
            span = parse_span(record)
            if span is None or not span.trace_id:
                continue
            content = self._target.content
            more = {} if content is None else self._mask(await content.describe(span))
            # Masked once more: a secret may have been learnt since the line was written.
            encoded = self._encoder.encode(replace(span, data=self._mask(dict(span.data))), more)
            if len(self._waiting) == MOST_WAITING:
                self.dropped += 1  # the oldest one
            self._waiting.append((span.component, encoded))
        if self._waiting:
            self._added.set()

    def _mask(self, data: JsonObject) -> JsonObject:
        return cast("JsonObject", self._redact.redact_data(data))

    async def _send(self) -> None:
        failed = 0
        while True:
            await self._added.wait()
            self._added.clear()
            while self._waiting:
                failed = 0 if await self._try_send() else failed + 1
                if failed:
                    await asyncio.sleep(backoff_seconds(failed, _RETRY_SECONDS, _RETRY_CAP_SECONDS))

    async def _try_send(self) -> bool:
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        try:
            await self._target.sink.send(group_by_component(batch))
        except RefusedExport as refusal:
            self.dropped += len(batch)
            self._note_failure(refusal)
        except (OSError, httpx.HTTPError) as error:
            self._put_back(batch)
            self._note_failure(error)
            return False
        except asyncio.CancelledError:
            self._put_back(batch)
            raise
        else:
            self._note_success()
        return True

    def _put_back(self, batch: list[tuple[str, JsonObject]]) -> None:
        room = MOST_WAITING - len(self._waiting)
        kept = batch[len(batch) - room :] if room < len(batch) else batch
        self.dropped += len(batch) - len(kept)
        self._waiting.extendleft(reversed(kept))

    def _note_failure(self, error: Exception) -> None:
        if not self._failing:
            self._failing = True
            _log.warning("Traces can not be exported for now: %s", error or type(error).__name__)

    def _note_success(self) -> None:
        if self._failing:
            self._failing = False
            _log.info("Traces are exported again; %d spans were lost so far", self.dropped)


def make_exporters(settings: Settings, traces: Path, *, redact: Redactor, content: SpanContent) -> list[TraceExporter]:
    """One for each place that is configured, mostly none."""
    said = content if settings.otel_content else None
    sinks: list[SpanSink] = []
    if settings.otel_exporter_otlp_endpoint:
        given = settings.otel_exporter_otlp_headers
        headers = _parse_headers("" if given is None else given.get_secret_value())
        redact.learn(headers.values())
        sinks.append(OtlpHttpSink(settings.otel_exporter_otlp_endpoint, headers))
    if settings.otel_file:
        sinks.append(OtlpFileSink(Path(settings.otel_file).expanduser()))
    return [TraceExporter(traces, redact, ExportTarget(sink, said)) for sink in sinks]


def _parse_headers(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = part.partition("=")
        if not sign or not name.strip().isascii() or not value.strip().isascii():
            raise ConfigMistake(
                "OTEL_EXPORTER_OTLP_HEADERS is not valid.",
                hint="Write name=value, separated by commas.",
                field="OTEL_EXPORTER_OTLP_HEADERS",
            )
        headers[name.strip()] = value.strip()
    return headers
