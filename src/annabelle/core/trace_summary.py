"""What a turn was made of, told in short rows from its trace (TRC-04)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from annabelle.core.trace_export import TraceSpan

Row = tuple[str, str]
Data = Mapping[str, object]


def summarize_turn(spans: Sequence[TraceSpan]) -> list[Row]:
    """Summary rows with headings; empty for a trace without a turn."""
    rows = [
        (heading, text)
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


def _describe_scan(data: Data) -> str:
    of = f"{data.get('tool') or data.get('server', '?')} ({data.get('direction', '?')})"
    threats = ", ".join(str(one) for one in _rows(data.get("threats")))
    return f"{of}, risk {data.get('verdict', '?')}{f': {threats}' if threats else ''}"


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
    ("content.scanned", "Scan", _describe_scan),
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
