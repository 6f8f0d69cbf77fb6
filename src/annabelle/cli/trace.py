"""`annabelle trace ID`: shows one turn as a waterfall from the trace file (TRC-04)."""

from __future__ import annotations

import json as json_text
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_table
from annabelle.core.errors import NotFound
from annabelle.core.home import Home
from annabelle.core.ids import is_id
from annabelle.core.trace import read_trace
from annabelle.core.trace_export import TraceSpan, parse_spans, to_otlp

Row = tuple[str, str]
Data = Mapping[str, object]


def summarize_turn(spans: Sequence[TraceSpan]) -> list[Row]:
    """Summary rows with headings; empty for a trace without a turn."""
    rows = [
        (heading, clean(text))
        for event, heading, tell in _SUMMARIES
        for span in spans
        if span.event == event and (text := tell(span.data))
    ]
    return [*rows, *_total_rows([span.data for span in spans if span.event in ("model.called", "model.called_aside")])]


def _describe_layers(data: Data) -> str:
    tokens = _object(data.get("tokens"))
    left_out = _object(data.get("left_out"))
    parts = [f"{name} {_count(value)}" for name, value in tokens.items() if value]
    told = f"{', '.join(parts)} tokens" if parts else ""
    messages = data.get("history_messages")
    history = f"{messages} messages of history" if messages else ""
    cut = ", ".join(f"{_count(value)} of {name}" for name, value in left_out.items() if value)
    return "; ".join(part for part in (told, history, f"left out: {cut}" if cut else "") if part)


def _describe_selection(data: Data) -> str:
    best = [_pair(row) for row in _rows(data.get("top"))]
    scores = ", ".join(f"{name} {score:.2f}" for name, score in best)
    chosen = f"{_count(data.get('selected'))} of {_count(data.get('total'))} by {data.get('method', '?')}"
    return f"{chosen}, cut at {_number(data.get('cutoff')):.2f}: {scores}" if scores else chosen


def _describe_thinking(data: Data) -> str:
    before, after = _count(data.get("tokens_before")), _count(data.get("tokens_after"))
    return f"{before} → {after} tokens, {data.get('strategy', '?')}, {_number(data.get('duration_ms')):.1f} ms"


def _describe_model_call(data: Data) -> str:
    cached = f" ({_count(data.get('cached_tokens'))} cached)" if data.get("cached_tokens") else ""
    tokens = f"{_count(data.get('input_tokens'))}{cached} + {_count(data.get('output_tokens'))} tokens"
    return f"{data.get('provider', '?')}/{data.get('model', '?')}, {tokens}, {_money(data.get('cost_usd'))}"


def _describe_aside(data: Data) -> str:
    return f"{data.get('purpose', '?')}: {_describe_model_call(data)}"


def _describe_tool_call(data: Data) -> str:
    ended = str(data.get("error") or "ok")
    return f"{data.get('tool', '?')}, {ended}, {_number(data.get('duration_ms')):.1f} ms"


def _describe_judgement(data: Data) -> str:
    order = " and ".join(f"“{words}”" for words in _rows(data.get("order")))
    return f"{data.get('tool', '?')}, {data.get('verdict', '?')}, {f'ordered by {order}' if order else 'no order'}"


def _total_rows(calls: Sequence[Data]) -> list[Row]:
    if not calls:
        return []
    used = sum(_number(call.get(name)) for call in calls for name in ("input_tokens", "output_tokens"))
    costs = [call.get("cost_usd") for call in calls]
    money = _money(sum(_number(cost) for cost in costs) if any(cost is not None for cost in costs) else None)
    noun = "call" if len(calls) == 1 else "calls"
    return [("Total", f"{len(calls)} model {noun}, {_count(used)} tokens, {money}")]


_SUMMARIES: tuple[tuple[str, str, Callable[[Data], str]], ...] = (
    ("context.built", "Layers", _describe_layers),
    ("tools.selected", "Tools", _describe_selection),
    ("thinking.done", "Thinking", _describe_thinking),
    ("model.called", "Model", _describe_model_call),
    ("model.called_aside", "Aside", _describe_aside),
    ("call.judged", "Policy", _describe_judgement),
    ("tool.returned", "Call", _describe_tool_call),
)


def _object(value: object) -> Data:
    return cast("Data", value) if isinstance(value, dict) else {}


def _rows(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _pair(row: object) -> tuple[str, float]:
    name, score, *_ = [*_rows(row), "?", 0.0]
    return str(name), _number(score)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _count(value: object) -> str:
    return f"{_number(value):,.0f}"


def _money(value: object) -> str:
    return f"${_number(value):.6f}" if isinstance(value, int | float) else "price unknown"


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
            print_table(("", "In this turn"), told)


def find_last_turn(path: Path) -> str | None:
    """The trace id of the last received message."""
    for file in (path, path.with_name(f"{path.name}.1")):
        if file.exists():
            with file.open(encoding="utf-8", errors="replace") as lines:
                found = deque((line for line in lines if '"message.received"' in line), maxlen=1)
            if found and (named := re.search(r'"trace_id": "(tr_\w+)"', found[0])):
                return named[1]
    return None


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
