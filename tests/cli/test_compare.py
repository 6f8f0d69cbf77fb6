"""`annabelle compare`: recorded conversations with and without the thinking phase."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from annabelle.core.home import Home
from annabelle.thinker.compression.comparison import ComparisonResult
from cli.terminal import environment, run


def conversation(pages: int) -> list[dict[str, Any]]:
    """A user who pages through orders, and at last cancels one of the first page."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Show me my orders, I am ada_4411."},
    ]
    for page in range(pages):
        orders = [{"order_id": f"#W{page}{n:03}", "status": "open", "note": "left at the door " * 12} for n in range(8)]
        wanted = {"name": "get_orders", "arguments": json.dumps({"user_id": "ada_4411", "page": page})}
        call = {"id": f"c{page}", "type": "function", "function": wanted}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{page}", "name": "get_orders", "content": json.dumps(orders)},
        ]
    cancel = {"name": "cancel", "arguments": json.dumps({"order_id": "#W0003"})}
    return [
        *messages,
        {"role": "assistant", "content": "Which one shall go?"},
        {"role": "user", "content": "The one with W0003."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "last", "type": "function", "function": cancel}]},
    ]


def recorded(path: Path, *rows: object) -> Path:
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.req("CMP-08")
def test_it_tells_tokens_cost_calls_time_and_whether_the_outcome_is_the_same(home: Home, tmp_path: Path):
    file = recorded(tmp_path / "talks.jsonl.gz", {"id": "long", "messages": conversation(12)}, conversation(1))
    shown = run(environment(home), "compare", str(file), "--budget", "2000", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    long, short = told["conversations"]
    assert long["id"] == "long"
    assert long["tokens_with"] < long["tokens_without"] / 2
    assert (short["tokens_with"], short["shortened"]) == (short["tokens_without"], 0)
    assert told["tokens"] == {name: long[f"tokens_{name}"] + short[f"tokens_{name}"] for name in ("without", "with")}
    assert 0 < told["cost_usd"]["with"] < told["cost_usd"]["without"]
    assert told["model_calls"]["with"] == told["model_calls"]["without"] == long["requests"] + short["requests"]
    assert told["thinking_ms"] > 0
    assert (told["same_outcome"], told["kept"], long["lost"]) == (2, 1.0, [])
    table = run(environment(home), "compare", str(file), "--budget", "2000")
    assert table.returncode == 0, table.stderr
    assert [line.split()[0] for line in table.stdout.splitlines()[:4]] == [
        "CONVERSATION",
        "long",
        "talks.jsonl.gz,",
        "all",
    ]
    assert "2 of 2" in table.stdout
    costs = [word for word in table.stdout.splitlines()[3].split() if word.startswith("$")]
    assert costs == [f"${told['cost_usd'][name]:.4f}" for name in ("without", "with")]
    assert costs[0] != costs[1]


@pytest.mark.req("CMP-08")
def test_what_was_lost_is_named(home: Home, tmp_path: Path):
    talk = conversation(40)
    talk[-2]["content"] = "The one you like best."
    talk[-1]["tool_calls"][0]["function"]["arguments"] = json.dumps({"note": "left at the door left at the door"})
    file = recorded(tmp_path / "talk.jsonl", talk)
    shown = run(environment(home), "compare", str(file), "--budget", "600", "--strategy", "sliding-window")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[1].endswith("no")
    assert "lost: left at the door left at the door, which cancel was called with" in shown.stdout


@pytest.mark.req("CMP-08")
def test_a_session_of_this_home_is_compared_and_not_changed(home: Home):
    path = home.agent("annabelle") / "sessions" / "thr_abc.jsonl"
    path.parent.mkdir(parents=True)
    turn = {
        "type": "turn",
        "messages": [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hello " * 3000}]},
            {"kind": "response", "parts": [{"part_kind": "text", "content": "Hi."}]},
        ],
    }
    text = '{"type": "header"}\n' + f"{json.dumps(turn)}\n" * 2 + '{"type": "turn", "mess'
    path.write_text(text)
    summed_up = path.parent / "older" / path.name
    summed_up.parent.mkdir()
    summed_up.write_text(f"{json.dumps(turn)}\n" * 3)
    shown = run(environment(home), "compare", "--session", "thr_abc", "--budget", "1000", "--json")
    assert shown.returncode == 0, shown.stderr
    (told,) = json.loads(shown.stdout)["conversations"]
    assert (told["id"], told["requests"]) == ("thr_abc", 5)
    assert path.read_text() == text


@pytest.mark.req("CMP-08", "UX-01")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json\n", "talk.jsonl, line 1 is no conversation"),
        ('{"messages": []}\n', "talk.jsonl, line 1 has no messages"),
        ('[{"role": "king", "content": "x"}]\n', "the role 'king' is unknown"),
        ("5\n", "line 1 is no conversation"),
        ("", "There is no conversation"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_in_one_sentence(home: Home, tmp_path: Path, text: str, words: str):
    file = tmp_path / "talk.jsonl"
    file.write_text(text)
    refused = run(environment(home), "compare", str(file))
    assert refused.returncode != 0
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.req("CMP-08")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Nothing to compare is named."),
        (("nowhere.jsonl",), "nowhere.jsonl can not be read"),
        (("--session", "thr_none"), "No conversation 'thr_none' is recorded"),
        (("--session", "../x"), "No conversation '../x' is recorded"),
        (("x.jsonl", "--strategy", "magic"), "There is no strategy 'magic'."),
        (("x.jsonl", "--budget", "5"), "The budget must be 500 tokens or more."),
    ],
)
def test_a_wrong_wish_is_refused_in_one_sentence(home: Home, arguments: tuple[str, ...], words: str):
    refused = run(environment(home), "compare", *arguments)
    assert refused.returncode != 0
    assert words in refused.stderr


@pytest.mark.req("CMP-08")
def test_the_outcome_is_the_same_only_if_nothing_was_lost_and_every_history_was_valid() -> None:
    assert ComparisonResult("talk").same
    assert not ComparisonResult("talk", lost=[("cancel", "#W0003")]).same
    assert not ComparisonResult("talk", invalid=1).same
