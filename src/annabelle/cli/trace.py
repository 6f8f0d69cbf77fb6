"""`annabelle trace ID`: shows one turn as a waterfall from the trace file (TRC-04)."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_table
from annabelle.core.errors import NotFound
from annabelle.core.home import Home
from annabelle.core.ids import is_id
from annabelle.core.trace import find_last_turn, read_trace
from annabelle.core.trace_export import TraceSpan, parse_spans, to_otlp
from annabelle.core.trace_summary import summarize_turn

BAR_WIDTH = 28
_IDS = {"message_id", "call_id", "thread_id", "duration_ms"}

app = command_app()


@app.command()
def trace(
    trace_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A trace id (tr_…), as logs name it; by default the last turn's.")
    ] = None,
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Print it in OpenTelemetry's JSON form, as a collector takes it.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what happened in one turn, step by step, with times, tokens and money."""
    home = Home.from_environment()
    trace_id = trace_id or find_last_turn(home.traces_file)
    if trace_id is None:
        raise NotFound("Nothing is recorded yet.", hint='Ask something first, as in: annabelle ask "Hello"')
    records = read_trace(home.traces_file, trace_id) if is_id(trace_id, "tr") else []
    if not records:
        raise NotFound(
            f"Nothing is recorded of the trace {trace_id!r}.",
            hint=f"Ids look like tr_01k…; they are in the logs and in {home.traces_file}.",
        )
    spans = parse_spans(records)
    if otlp:
        print_json(to_otlp(trace_id, spans))
    elif json:
        print_json({"trace_id": trace_id, "events": records})
    else:
        print_waterfall(trace_id, spans)
        if told := summarize_turn(spans):
            print_line("")
            print_table(("", "In this turn"), [(heading, clean(text)) for heading, text in told])


def print_waterfall(trace_id: str, spans: list[TraceSpan]) -> None:
    start, end = min(span.began for span in spans), max(span.ended for span in spans)
    whole = max((end - start).total_seconds(), 0.001)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000
    names = max(len(span.component) for span in spans), max(len(span.event) for span in spans)
    for span in spans:
        offset, length = (span.began - start).total_seconds(), (span.ended - span.began).total_seconds()
        line = Text(f"{_format_seconds(offset):>9}  ", style="dim")
        line.append(render_bar(offset / whole, length / whole), style="cyan")
        line.append(f"  {clean(span.component):<{names[0]}}  ", style="bold")
        line.append(f"{clean(span.event):<{names[1]}}", style="default")
        if length:
            line.append(f"  {_format_seconds(length)}", style="green")
        line.append(_format_details(span.data), style="dim")
        console.print(line, no_wrap=True, overflow="ellipsis")
    console.print(f"{len(spans)} events in {_format_seconds(whole)}, trace {trace_id}")


def render_bar(begin: float, length: float) -> str:
    """A bar of fixed width with at least one block."""
    left = min(int(begin * BAR_WIDTH), BAR_WIDTH - 1)
    size = max(1, min(round(length * BAR_WIDTH), BAR_WIDTH - left))
    return " " * left + "█" * size + " " * (BAR_WIDTH - left - size)


def _format_seconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _format_details(data: Mapping[str, object]) -> str:
    """An event's details without ids, which only the JSON shows."""
    shown = [(name, value) for name, value in data.items() if name not in _IDS and (value or value is False)]
    texts = (
        value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False, default=str)
        for _, value in shown
    )
    return "".join(f"  {name}={' '.join(clean(text).split())}" for (name, _), text in zip(shown, texts, strict=True))
