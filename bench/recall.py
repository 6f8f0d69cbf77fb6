"""How often what answers a question is found: our search beside BM25, vectors alone and the two mixed 0.3 to 0.7.

    recall.py --data DIR

Reads every *.jsonl and *.jsonl.gz in DIR whose lines have `docs` and `queries`: docs are turns (id "<session>:<n>",
speaker, date, text), queries have the ids of the turns that hold the answer (`gold`) and may have a category. Dates may
be written in any way or be missing. Each line is a memory of its own, kept and searched by the parts the server is made
of.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from annabelle.core.home import Home
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.open_memory import OpenMemory, store_turn
from annabelle.store.memory.conversations import NewTurn
from annabelle.store.memory.owner import Owner
from conversation_data import Dialogue, read_folder
from measure import Report, data_arguments, percentile
from recall_baselines import Baselines

AT = (1, 5, 10)
OURS = "ours"
GOAL = {"bfcl_memory": 0.98}
"""What recall@5 must reach, by the name of the file."""


class Recall:
    """Shares of the answers that were among the first 1, 5 and 10, by method and by group of questions."""

    def __init__(self) -> None:
        self._shares: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)

    def add(self, groups: tuple[str, ...], method: str, found: list[str], gold: set[str]) -> None:
        shares = tuple(len(gold.intersection(found[:n])) / len(gold) for n in AT)
        for group in groups:
            self._shares[group, method].append(shares)

    def figures(self) -> Iterator[tuple[str, str, tuple[float, ...], int]]:
        for (group, method), rows in sorted(self._shares.items()):
            yield group, method, tuple(sum(column) / len(rows) for column in zip(*rows, strict=True)), len(rows)


class Times:
    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def __enter__(self) -> None:
        self._started = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.cpu.append((time.process_time() - self._started[0]) * 1000)
        self.wall.append((time.perf_counter() - self._started[1]) * 1000)


def config_in(folder: Path, provider: str) -> MemoryConfig:
    home = Home(folder)
    return MemoryConfig(
        file=home.memory_file,
        backups=home.backups,
        export_folder=home.memory_export,
        workspace=home.workspace,
        embedding_cache=home.embedding_cache,
        embedding=EmbeddingConfig(provider=provider),  # type: ignore[arg-type]
        backup_hours=0,
    )


async def measure(dialogue: Dialogue, provider: str, recall: Recall, times: Times) -> None:
    """Keep every turn of a dialogue as the server would, then ask every question."""
    owner = Owner("bench", "annabelle")
    baselines = Baselines([doc.text for doc in dialogue.docs], [doc.id for doc in dialogue.docs])
    with tempfile.TemporaryDirectory() as folder:
        library = await OpenMemory.open(config_in(Path(folder), provider))
        try:
            ids: dict[int, str] = {}
            for doc in dialogue.docs:
                turn, _ = await store_turn(
                    library, owner, NewTurn(doc.session, doc.text, "", doc.said_at, speaker=doc.speaker)
                )
                ids[turn.id] = doc.id
            for query in dialogue.queries:
                groups = (f"{dialogue.file}", f"{dialogue.file}/{dialogue.pool}", f"{dialogue.file}: {query.category}")
                groups = tuple(dict.fromkeys(("all", *groups)))
                with times:
                    found = await library.search.search_conversations(owner, query.text, max(AT))
                recall.add(groups, OURS, [ids[hit.row_id] for hit in found.hits], query.gold)
                for method, order in (await baselines.ask(query.text, max(AT))).items():
                    recall.add(groups, method, order, query.gold)
        finally:
            await library.close()


async def run(folder: Path, provider: str) -> Report:
    report, recall, times = Report("recall"), Recall(), Times()
    dialogues, left_out = read_folder(folder)
    if not dialogues:
        raise SystemExit(f"No file in {folder} has lines with docs and queries.")
    for dialogue in dialogues:
        await measure(dialogue, provider, recall, times)
    best_other: dict[str, float] = {}
    for group, method, shares, count in recall.figures():
        for n, share in zip(AT, shares, strict=True):
            report.figures[f"{group} | {method} | recall@{n}"] = share
        print(
            f"{group:44} {method:14} {'  '.join(f'@{n} {x:.3f}' for n, x in zip(AT, shares, strict=True))}  ({count})"
        )
        if method != OURS:
            best_other[group] = max(best_other.get(group, 0.0), shares[1])
    for group, best in best_other.items():
        ours = report.figures[f"{group} | {OURS} | recall@5"]
        if group == "all" or ("/" not in group and ":" not in group):
            report.ratios[f"{group} | recall@5 to the best baseline"] = ours / best if best else 1.0
    for name, goal in GOAL.items():
        if f"{name} | {OURS} | recall@5" in report.figures and provider == "embedded":
            report.within(f"{name}: recall@5", report.figures[f"{name} | {OURS} | recall@5"], goal, at_least=True)
    report.figures |= {
        "questions": float(len(times.cpu)),
        "questions_left_out": float(left_out),
        "turns": float(sum(len(dialogue.docs) for dialogue in dialogues)),
        "search_p50_cpu_ms": percentile(times.cpu, 0.5),
        "search_p95_cpu_ms": percentile(times.cpu, 0.95),
        "search_p50_ms": percentile(times.wall, 0.5),
        "search_p95_ms": percentile(times.wall, 0.95),
    }
    return report


def main() -> None:
    arguments = data_arguments(__doc__, "conversations and questions")
    asyncio.run(run(arguments.data, arguments.provider)).print()


if __name__ == "__main__":
    main()
