"""The parts of the memory benchmark that run in a process of their own: `memory_parts.py PART FOLDER`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import numpy as np
import psutil

import memory_ours as ours
from annabelle.store.engine import driver
from measure import percentile
from memory_rows import Rows

WARM, INSERTS = 20, 200


class Costs:
    """What single calls cost: CPU of the whole process, and time."""

    def __init__(self) -> None:
        self._cpu: list[float] = []
        self._wall: list[float] = []

    def __enter__(self) -> None:
        self._began = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._cpu.append((time.process_time() - self._began[0]) * 1000)
        self._wall.append((time.perf_counter() - self._began[1]) * 1000)

    def figures(self) -> dict[str, float]:
        return {
            "p50_cpu_ms": percentile(self._cpu, 0.5),
            "p95_cpu_ms": percentile(self._cpu, 0.95),
            "p50_ms": percentile(self._wall, 0.5),
            "p95_ms": percentile(self._wall, 0.95),
        }


def timed(calls: Iterable[Callable[[], object]]) -> dict[str, float]:
    costs = Costs()
    for number, call in enumerate(calls):
        if number < WARM:
            call()
            continue
        with costs:
            call()
    return costs.figures()


async def timed_async(calls: Iterable[Awaitable[object]]) -> dict[str, float]:
    costs = Costs()
    for call in calls:
        with costs:
            await call
    return costs.figures()


def read(folder: Path, name: str) -> list[str]:
    return json.loads((folder / f"{name}.json").read_text())


def fill(folder: Path) -> dict[str, float]:
    started = time.perf_counter()
    asyncio.run(ours.fill(folder / "home", read(folder, "facts"), folder / "vectors.npy"))
    return {"seconds": time.perf_counter() - started}


def hybrid(folder: Path) -> dict[str, float]:
    """Our own search through the library: what opening costs, what it holds, what a search and an insert take."""
    return asyncio.run(_hybrid(folder, read(folder, "questions")))


async def _hybrid(folder: Path, questions: list[str]) -> dict[str, float]:
    began = time.perf_counter()
    library = await ours.opened(folder / "home")
    figures = {
        "start_seconds": time.perf_counter() - began,
        "start_with_the_process_seconds": time.time() - psutil.Process().create_time(),
    }
    for question in questions[:WARM]:
        await ours.search(library, question)
    figures["rss_mb"] = psutil.Process().memory_info().rss / 2**20
    figures |= await timed_async(ours.search(library, question) for question in questions[WARM:])
    rows = Rows()
    inserts = await timed_async(ours.insert(library, rows.fact(10**9 + number)) for number in range(INSERTS))
    await library.close()
    return figures | {f"insert_{key}": value for key, value in inserts.items()}


def fts5(folder: Path) -> dict[str, float]:
    """A plain full-text table: every word of the question, the best ten rows."""
    table = driver.connect(str(folder / "plain.db"))
    table.execute("CREATE VIRTUAL TABLE facts USING fts5(text, tokenize = 'porter unicode61')")
    table.executemany("INSERT INTO facts (text) VALUES (?)", ((text,) for text in read(folder, "facts")))
    table.commit()

    def ask(question: str) -> None:
        words = "".join(letter if letter.isalnum() else " " for letter in question).split()
        match = " OR ".join(f'"{word}"' for word in words)
        table.execute("SELECT rowid FROM facts WHERE facts MATCH ? ORDER BY rank LIMIT 10", (match,)).fetchall()

    return timed([lambda question=question: ask(question) for question in read(folder, "questions")])


def exact(folder: Path) -> dict[str, float]:
    """One matrix, one product, the best ten rows; the vector of the question is given."""
    matrix = np.load(folder / "vectors.npy")
    vectors = asyncio.run(ours.embedded(read(folder, "questions")))
    np.save(folder / "asked.npy", vectors)

    def ask(number: int) -> None:
        scores = matrix @ vectors[number]
        best = np.argpartition(scores, -10)[-10:]
        best[np.argsort(-scores[best])].tolist()

    return timed([lambda number=number: ask(number) for number in range(len(vectors))])


PARTS = {"fill": fill, "hybrid": hybrid, "fts5": fts5, "numpy": exact}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]))))
