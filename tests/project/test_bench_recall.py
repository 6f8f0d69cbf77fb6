"""The recall benchmark takes conversations as others write them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.timing import seconds

DOCS = [
    {"id": "D1:1", "speaker": "Nora", "date": "1:56 pm on 8 May, 2023", "text": "I adopted a greyhound called Baron."},
    {"id": "D1:2", "speaker": "Tom", "date": "1:56 pm on 8 May, 2023", "text": "How old is he?"},
    {"id": "D2:1", "speaker": "Tom", "date": "2023-06-01T10:00:00", "text": "My flat has a view of the harbour."},
    {"id": "D2:2", "speaker": "", "date": "some day in spring", "text": ""},
    {"id": "D3:1", "text": "A doc without speaker and date, about sourdough."},
]
QUERIES = [
    {"query": "Which dog did Nora adopt?", "gold": ["D1:1"], "category": 4},
    {"query": "What can Tom see from his flat?", "gold": ["D2:1"], "category": "multi-hop"},
    {"query": "Who has a greyhound, and who a flat with a view?", "gold": ["D1:1", "D2:1"], "category": "of two"},
    {"query": "Who bakes sourdough?", "gold": ["D3:1", "D9:9"]},
    {"query": "Where is the answer?", "gold": ["D9:9"]},
    {"query": "Nothing at all?", "gold": []},
]


@pytest.mark.req("MEM-10")
def test_every_file_of_the_right_shape_is_measured_whatever_its_dates_look_like(root: Path, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "dialogues.jsonl.gz", "wt") as file:
        file.write(json.dumps({"pool": "pair", "docs": DOCS, "queries": QUERIES}) + "\n\n")
    (tmp_path / "tools.jsonl").write_text(json.dumps({"tools": [], "queries": [{"text": "no docs"}]}) + "\n")
    (tmp_path / "notes.txt").write_text("not data")
    done = subprocess.run(
        [sys.executable, root / "bench" / "recall.py", "--data", tmp_path],
        capture_output=True,
        text=True,
        timeout=seconds(100),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    figures = report["figures"]
    assert report["name"] == "recall"
    assert (figures["questions"], figures["questions_left_out"], figures["turns"]) == (4, 2, 5)
    assert figures["dialogues | ours | recall@5"] == 1
    for method in ("bm25", "vector", "0.7/0.3"):
        assert f"dialogues/pair | {method} | recall@10" in figures
    assert "dialogues: multi-hop | ours | recall@1" in figures
    for method in ("ours", "bm25", "vector", "0.7/0.3"):
        found = [figures[f"dialogues: of two | {method} | recall@{n}"] for n in (1, 5)]
        assert found == [0.5, 1], "the first of one place is half of the answer, and five are all there are"
    assert 0.5 < figures["dialogues | ours | recall@1"] < 1
    assert figures["search_p50_ms"] > 0


@pytest.mark.req("MEM-10")
def test_a_search_that_finds_less_than_its_goal_is_told_as_over_the_budget(root: Path, tmp_path: Path) -> None:
    query = {"query": "Which dog did Nora adopt?", "gold": ["D1:1", "D3:1"]}  # nobody finds the sourdough
    others = [{"id": f"D4:{n}", "text": f"Nora adopted dog number {n}."} for n in range(10)]
    line = {"docs": [DOCS[0], DOCS[4], *others], "queries": [query]}
    (tmp_path / "bfcl_memory.jsonl").write_text(json.dumps(line) + "\n")
    done = subprocess.run(
        [sys.executable, root / "bench" / "recall.py", "--data", tmp_path],
        capture_output=True,
        text=True,
        timeout=seconds(100),
    )
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout.splitlines()[-1])["budget"]
    assert entry["value"] <= 0.5
    assert (entry["what"], entry["limit"], entry["ok"]) == ("bfcl_memory: recall@5", 0.98, False)
    assert "OVER bfcl_memory: recall@5" in done.stdout


def test_a_folder_without_conversations_is_named(root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, root / "bench" / "recall.py", "--data", tmp_path],
        capture_output=True,
        text=True,
        timeout=seconds(100),
    )
    assert done.returncode != 0
    assert "docs and queries" in done.stderr
