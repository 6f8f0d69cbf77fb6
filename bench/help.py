"""`annabelle --help` must feel instant: nothing heavy may be imported for it."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

from measure import Report, median


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    annabelle = [str(Path(sys.executable).with_name("annabelle")), "--help"]
    ours = median([cpu_of(annabelle) for _ in range(runs)])
    bare = median([cpu_of([sys.executable, "-c", "import typer"]) for _ in range(runs)])
    report = Report("help")
    report.figures = {"annabelle_help_cpu_s": ours, "import_typer_cpu_s": bare}
    report.ratios = {"help_to_import_typer": ours / bare}
    report.within_time("CPU of annabelle --help", ours * 1000, 250, cpu=True)
    report.print()


if __name__ == "__main__":
    main()
