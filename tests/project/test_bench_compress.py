"""The benchmark of shortening takes conversations as others record them, and says so when there are none."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.timing import seconds


def measured(root: Path, data: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "bench" / "compress.py"), "--data", str(data), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds(100))


def talk() -> list[dict[str, object]]:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Which of my orders is late? I am ada_4411."}]
    for page in range(10):
        orders = [{"order_id": f"#W{page}{n:03}", "note": "left at the door " * 12} for n in range(8)]
        wanted = {"name": "get_orders", "arguments": json.dumps({"user_id": "ada_4411", "page": page})}
        call = {"id": f"c{page}", "type": "function", "function": wanted}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{page}", "content": json.dumps(orders)})
    return messages


@pytest.mark.req("CMP-03", "CMP-08")
def test_conversations_are_measured_beside_the_usual_ways(root: Path, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "trajectories-mine.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": "one", "messages": talk()}) + "\n")
    done = measured(root, tmp_path, "--budget", "2000")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["figures"]["moments"] >= 5
    assert report["ratios"]["adaptive_kept"] == 1.0
    assert report["figures"]["adaptive_tokens"] < report["figures"]["latest_that_fit_tokens"]
    assert {row["what"]: row["value"] for row in report["budget"]}["invalid chains"] == 0


def test_without_a_long_conversation_it_says_so(root: Path, tmp_path: Path) -> None:
    done = measured(root, tmp_path)
    assert done.returncode != 0
    assert "No conversation" in done.stderr
