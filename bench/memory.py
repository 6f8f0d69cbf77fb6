"""Search, insert, memory and start of a memory with many facts, beside plain full text, exact vectors and Chroma.

    memory.py --sizes 1000 10000 100000

Each is measured in a process of its own. Ours and the full text are SQLite files; Chroma runs from `.venv-bench`, which
`scripts/install bench` makes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import ROOT, Report
from memory_rows import Rows

SEARCH_CPU_MS = {10_000: 3.0, 100_000: 15.0}
"""What half of all searches may take, by the number of facts."""
INSERT_MS, RSS_MB, START_SECONDS = 3.0, 260.0, 1.5
LARGE = 100_000
QUESTIONS = 220
CHROMA = ROOT / ".venv-bench" / "bin" / "python"
HERE = Path(__file__).parent


def in_process(script: str, *arguments: object, python: str | Path = sys.executable) -> dict[str, float]:
    """Run a part of this benchmark by itself; its last line is JSON."""
    done = subprocess.run(
        [str(python), str(HERE / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3600,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-600:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(size: int, folder: Path, report: Report) -> None:
    rows = Rows()
    (folder / "facts.json").write_text(json.dumps([rows.fact(number) for number in range(size)]))
    (folder / "questions.json").write_text(json.dumps([rows.question(number, size) for number in range(QUESTIONS)]))
    filled = in_process("memory_parts.py", "fill", folder)
    parts = {name: in_process("memory_parts.py", name, folder) for name in ("hybrid", "fts5", "numpy")}
    try:
        if not CHROMA.exists():
            raise RuntimeError(f"{CHROMA.parent.parent.name} is not there; scripts/install bench makes it")
        parts["chroma"] = in_process("memory_chroma.py", folder, python=CHROMA)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"Chroma was not measured: {error}")
        report.figures[f"{size}/chroma/measured"] = 0.0
    report.figures[f"{size}/hybrid/fill_seconds"] = filled["seconds"]
    for name, figures in parts.items():
        report.figures |= {f"{size}/{name}/{key}": value for key, value in figures.items()}
        if name != "hybrid":
            for key in ("p50_cpu_ms", "p50_ms"):
                report.ratios[f"{size}/hybrid to {name}/{key}"] = parts["hybrid"][key] / max(figures[key], 1e-6)
    hold(size, parts["hybrid"], report)


def hold(size: int, ours: dict[str, float], report: Report) -> None:
    if size in SEARCH_CPU_MS:
        report.within_time(
            f"hybrid search over {size} facts, p50 CPU", ours["p50_cpu_ms"], SEARCH_CPU_MS[size], cpu=True
        )
    report.within_time(f"insert beside {size} facts, durable, p50", ours["insert_p50_ms"], INSERT_MS)
    if size == LARGE:
        report.within(f"memory of a process with {size} facts, MB", ours["rss_mb"], RSS_MB)
        report.within_time(f"start with {size} facts", ours["start_seconds"] * 1000, START_SECONDS * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of facts")
    report = Report("memory")
    for size in parser.parse_args().sizes:
        with tempfile.TemporaryDirectory() as folder:
            compare(size, Path(folder), report)
    report.print()


if __name__ == "__main__":
    main()
