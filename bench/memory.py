"""Search, insert, memory and start of a memory with many facts, beside plain full text, exact vectors and Chroma.

    memory.py --sizes 1000 10000 100000

Everything is measured in a process of its own on a SQLite file. Chroma runs from `.venv-bench` (`scripts/install bench`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from measure import ROOT, Report, percentile
from memory_rows import Rows

LIMITS = {1_000: None, 10_000: 3.0, 100_000: 15.0}
"""Milliseconds of CPU half of all searches may take, by the number of facts."""
INSERT_MS, RSS_MB, START_SECONDS = 3.0, 260.0, 1.5
CHROMA = ROOT / ".venv-bench" / "bin" / "python"
QUERIES, INSERTS, WARM = 200, 200, 20


def timed(calls: list[Callable[[], object]]) -> dict[str, float]:
    """The cost of each call: CPU of the whole process, and time."""
    cpu: list[float] = []
    wall: list[float] = []
    for call in calls:
        started = time.process_time(), time.perf_counter()
        call()
        cpu.append((time.process_time() - started[0]) * 1000)
        wall.append((time.perf_counter() - started[1]) * 1000)
    return {
        "p50_cpu_ms": percentile(cpu, 0.5),
        "p95_cpu_ms": percentile(cpu, 0.95),
        "p50_ms": percentile(wall, 0.5),
        "p95_ms": percentile(wall, 0.95),
    }


def in_process(*arguments: str, python: str | Path = sys.executable, timeout: float = 3600) -> dict[str, float]:
    """Run a part of this benchmark by itself; its last line is JSON."""
    done = subprocess.run([str(python), *arguments], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-600:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(size: int, folder: Path, report: Report) -> None:
    rows, me = Rows(), __file__
    texts, questions = folder / "facts.json", folder / "questions.json"
    texts.write_text(json.dumps([rows.fact(number) for number in range(size)]))
    questions.write_text(json.dumps([rows.question(number, size) for number in range(QUERIES + WARM)]))
    home = str(folder / "home")
    filled = in_process(me, "--part", "fill", home, str(folder))
    parts = {
        "hybrid": in_process(me, "--part", "hybrid", home, str(folder)),
        "fts5": in_process(me, "--part", "fts5", str(folder)),
        "numpy": in_process(me, "--part", "numpy", str(folder)),
    }
    try:
        if not CHROMA.exists():
            raise RuntimeError(f"{CHROMA.parent.parent.name} is not installed; scripts/install bench makes it")
        script = str(Path(__file__).with_name("memory_chroma.py"))
        parts["chroma"] = in_process(script, str(folder), python=CHROMA)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"Chroma was not measured: {error}")
        report.figures[f"{size}/chroma/measured"] = 0.0
    report.figures[f"{size}/fill_seconds"] = filled["seconds"]
    for name, figures in parts.items():
        report.figures |= {f"{size}/{name}/{key}": value for key, value in figures.items()}
        if name != "hybrid":
            for key in ("p50_cpu_ms", "p50_ms"):
                report.ratios[f"{size}/hybrid to {name}/{key}"] = parts["hybrid"][key] / max(figures[key], 1e-6)
    ours = parts["hybrid"]
    if limit := LIMITS.get(size):
        report.within(f"hybrid search over {size} facts, p50 CPU ms", ours["p50_cpu_ms"], limit)
    report.within(f"insert beside {size} facts, durable, p50 ms", ours["insert_p50_ms"], INSERT_MS)
    if size == max(LIMITS):
        report.within(f"memory with {size} facts, MB", ours["rss_mb"], RSS_MB)
        report.within(f"start with {size} facts, s", ours["start_seconds"], START_SECONDS)


def fill(home: Path, folder: Path) -> dict[str, float]:
    from memory_ours import fill as fill_ours

    started = time.perf_counter()
    asyncio.run(fill_ours(home, json.loads((folder / "facts.json").read_text()), folder / "vectors.npy"))
    return {"seconds": time.perf_counter() - started}


def hybrid(home: Path, folder: Path) -> dict[str, float]:
    """Our own search through the library, from a cold process on."""
    started = time.perf_counter()
    from memory_ours import opened  # the imports are part of a start

    questions = json.loads((folder / "questions.json").read_text())
    with asyncio.Runner() as runner:
        library = runner.run(opened(home))
        figures = {"start_seconds": time.perf_counter() - started}
        from memory_ours import insert, search

        for question in questions[:WARM]:
            runner.run(search(library, question))
        figures["rss_mb"] = psutil.Process().memory_info().rss / 2**20
        figures |= timed([lambda q=q: runner.run(search(library, q)) for q in questions[WARM:]])
        rows = Rows()
        inserts = timed([lambda n=n: runner.run(insert(library, rows.fact(10**9 + n))) for n in range(INSERTS)])
        figures |= {f"insert_{key}": value for key, value in inserts.items()}
        runner.run(library.close())
    return figures


def fts5(folder: Path) -> dict[str, float]:
    """A plain full-text table: every word of the question, the best ten rows."""
    from annabelle.store.driver import driver

    table = driver.connect(str(folder / "plain.db"))
    table.execute("CREATE VIRTUAL TABLE facts USING fts5(text, tokenize = 'porter unicode61')")
    texts = json.loads((folder / "facts.json").read_text())
    table.executemany("INSERT INTO facts (text) VALUES (?)", ((text,) for text in texts))
    table.commit()

    def ask(question: str) -> None:
        words = "".join(letter if letter.isalnum() else " " for letter in question).split()
        match = " OR ".join(f'"{word}"' for word in words)
        table.execute("SELECT rowid FROM facts WHERE facts MATCH ? ORDER BY rank LIMIT 10", (match,)).fetchall()

    questions = json.loads((folder / "questions.json").read_text())
    for question in questions[:WARM]:
        ask(question)
    return timed([lambda q=q: ask(q) for q in questions[WARM:]])


def exact(folder: Path) -> dict[str, float]:
    """One matrix, one product, the best ten rows."""
    import numpy as np
    from memory_ours import embedded

    matrix, questions = np.load(folder / "vectors.npy"), json.loads((folder / "questions.json").read_text())
    vectors = asyncio.run(embedded(questions))
    np.save(folder / "asked.npy", vectors)

    def ask(number: int) -> None:
        scores = matrix @ vectors[number]
        best = np.argpartition(scores, -10)[-10:]
        best[np.argsort(-scores[best])].tolist()

    for number in range(WARM):
        ask(number)
    return timed([lambda n=n: ask(n) for n in range(WARM, len(questions))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of facts")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        name, *paths = arguments.part
        parts = {"fill": fill, "hybrid": hybrid, "fts5": fts5, "numpy": exact}
        print(json.dumps(parts[name](*map(Path, paths))))
        return
    report = Report("memory")
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            compare(size, Path(folder), report)
    report.print()


if __name__ == "__main__":
    main()
