"""Writes tests/slow_files.txt, the files that `make quick` leaves out, from a report of the whole suite.

`make test ARGS="--junitxml=build/tests.xml"`, then `.venv/bin/python scripts/slow_tests.py build/tests.xml`. Files that
start processes are left out without being listed.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

LISTED = Path(__file__).resolve().parent.parent / "tests" / "slow_files.txt"
SLOW_SECONDS = 0.1
"""By the clock, beside three other workers, which is about twice the CPU."""


def slow_files(report: Path) -> list[str]:
    taken: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  our own report
        taken[case.attrib["classname"]].append(float(case.attrib["time"]))
    means = {name: sum(times) / len(times) for name, times in taken.items()}
    files = (
        name.removeprefix("tests.").replace(".", "/") + ".py" for name in sorted(means) if means[name] > SLOW_SECONDS
    )
    return [file for file in files if (LISTED.parent / file).is_file()]


if __name__ == "__main__":
    first = LISTED.read_text(encoding="utf-8").splitlines()[0]
    LISTED.write_text("\n".join([first, *slow_files(Path(sys.argv[1]))]) + "\n", encoding="utf-8")
