"""How well the guardian tells attacks from ordinary content, and how long it takes.

    .venv/bin/python bench/injection.py --data DIR [--packaged PYTHON] [--unseen] [--cost] [--misses]

DIR holds injection*.jsonl or .jsonl.gz. Detection is measured where 1 % of the ordinary tool output is flagged, by
subset and by channel, beside plain patterns and, with --packaged, the classifier installed for that interpreter, which
gets a sample of the rows, since it takes a quarter of a second for a thousand characters. --unseen trains again without
a family of attacks and some kinds of ordinary text at once (a few minutes) and measures on what was left out; without
it the shipped weights are measured, which have seen these rows if DIR is what they were trained from. Texts of unusual
kinds, which nothing was trained on, are measured always.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.document import read_document
from annabelle.servers.guardian.judges import EmbeddedScanner
from injection_baselines import packaged_scores, plain_score
from injection_hostile import measure_hostile
from injection_unseen import measure_unseen
from injection_unusual import measure_unusual
from measure import Report

FLAGGED = 0.01
PACKAGED_ROWS = 30
"""Rows of each subset that the packaged classifier is asked about."""
_TIMED = ((500, 300), (20_000, 40))


@dataclass(frozen=True)
class Row:
    """One labelled text."""

    text: str
    attack: bool
    subset: str
    channel: str

    @property
    def context(self) -> str:
        return "message" if self.channel == "user_input" else "tool output"


def read_rows(folder: Path) -> list[Row]:
    rows: list[Row] = []
    for file in sorted(folder.glob("injection*.jsonl*")):
        with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                rows.append(Row(line["text"], bool(line["label"]), line["subset"], line["channel"]))
    return rows


def threshold(scores: Iterable[float], flagged: float = FLAGGED) -> float:
    """The score that only this share of ordinary texts is above."""
    ordered = sorted(scores, reverse=True)
    return ordered[min(len(ordered) - 1, int(flagged * len(ordered)))]


def share_above(scores: list[float], limit: float) -> float:
    return sum(score > limit for score in scores) / max(1, len(scores))


def detection(report: Report, name: str, rows: list[Row], scores: list[float]) -> None:
    """By channel and by subset, at the threshold of that channel's ordinary texts."""
    for channel in ("tool_output", "user_input"):
        mine = [(row, score) for row, score in zip(rows, scores, strict=True) if row.channel == channel]
        limit = threshold(score for row, score in mine if not row.attack)
        report.figures[f"{name}_{channel}"] = share_above([score for row, score in mine if row.attack], limit)
        for subset in sorted({row.subset for row, _ in mine if row.attack}):
            found = share_above([score for row, score in mine if row.subset == subset and row.attack], limit)
            report.figures[f"{name}_{channel}_{subset}"] = found


def alarms(report: Report, name: str, rows: list[Row], blocked: list[bool]) -> None:
    """False alarms at the defaults, by kind of ordinary text."""
    for subset in sorted({row.subset for row in rows if not row.attack}):
        flags = [flag for row, flag in zip(rows, blocked, strict=True) if row.subset == subset and not row.attack]
        report.figures[f"{name}_alarms_{subset}"] = sum(flags) / len(flags)


def timing(report: Report, scanner: EmbeddedScanner, rows: list[Row]) -> None:
    """CPU of one scan; every text is another one."""
    pool = "\n".join(row.text for row in rows if not row.attack and row.channel == "tool_output")
    for length, count in _TIMED:
        taken: list[float] = []
        for number in range(count):
            start = (number * 7_919) % max(1, len(pool) - length)
            text = pool[start : start + length]
            began = time.process_time()
            scanner.assess(read_document(text), "tool output")
            taken.append((time.process_time() - began) * 1000)
        report.figures[f"scan_{length}_ms_p50"] = statistics.median(taken)


def sampled(rows: list[Row]) -> list[Row]:
    """As many of each subset, from all over it."""
    subsets: dict[tuple[str, str, bool], list[Row]] = {}
    for row in rows:
        subsets.setdefault((row.subset, row.channel, row.attack), []).append(row)
    return [row for group in subsets.values() for row in group[:: -(-len(group) // PACKAGED_ROWS)]]


def beside_packaged(report: Report, python: str, rows: list[Row], scores: list[float]) -> None:
    """The packaged classifier on a sample, and ours on the same rows."""
    some = sampled(rows)
    report.figures["packaged_rows"] = float(len(some))
    found = packaged_scores(python, [row.text for row in some])
    detection(report, "packaged", some, [score for score, _ in found])
    alarms(report, "packaged", some, [blocked for _, blocked in found])
    ours = {row.text: score for row, score in zip(rows, scores, strict=True)}
    same = Report("injection")
    detection(same, "ours", some, [ours[row.text] for row in some])
    report.figures["ours_tool_output_on_packaged_rows"] = same.figures["ours_tool_output"]
    report.ratios["to_packaged"] = same.figures["ours_tool_output"] / max(1e-9, report.figures["packaged_tool_output"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--packaged", help="interpreter that has the packaged classifier")
    parser.add_argument("--unseen", action="store_true", help="also train without each family and kind")
    parser.add_argument("--cost", action="store_true", help="also measure what hostile text costs beside ordinary text")
    parser.add_argument("--misses", action="store_true", help="show what is missed and what is flagged wrongly")
    given = parser.parse_args()
    rows, report, scanner, config = read_rows(given.data), Report("injection"), EmbeddedScanner(), GuardianConfig()
    if not rows:
        raise SystemExit(f"{given.data} holds no injection*.jsonl or .jsonl.gz.")
    scores = [scanner.assess(read_document(row.text), row.context).score for row in rows]
    detection(report, "ours", rows, scores)
    detection(report, "patterns", rows, [plain_score(row.text) for row in rows])
    alarms(report, "ours", rows, [score >= config.block_score for score in scores])
    if given.packaged:
        beside_packaged(report, given.packaged, rows, scores)
    report.ratios["to_patterns"] = report.figures["ours_tool_output"] / max(
        1e-9, report.figures["patterns_tool_output"]
    )
    measure_unusual(report, scanner, config)
    timing(report, scanner, rows)
    if given.cost:
        measure_hostile(report, scanner)
    if given.misses:
        for row, score in zip(rows, scores, strict=True):
            if row.attack != (score >= config.block_score):
                print(f"{score:.2f} {'missed' if row.attack else 'wrong '} {row.subset}: {row.text[:200]!r}")
    if given.unseen:
        measure_unseen(report, given.data)
    report.within("detection on tool output at 1 %", report.figures["ours_tool_output"], 0.75, at_least=True)
    for subset in ("email-ham", "skill-md"):
        report.within(f"false alarms on {subset}", report.figures.get(f"ours_alarms_{subset}", 0.0), 0.01)
    report.within_time("CPU of 500 characters, p50", report.figures["scan_500_ms_p50"], 3, cpu=True)
    report.within_time("CPU of 20,000 characters, p50", report.figures["scan_20000_ms_p50"], 25, cpu=True)
    report.print()


if __name__ == "__main__":
    main()
