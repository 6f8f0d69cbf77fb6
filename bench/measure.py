"""What every benchmark needs: a hub to measure, the cost of a process tree, and the one JSON line at the end."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from annabelle.core.contract import ToolList

ROOT = Path(__file__).resolve().parent.parent
LEAST_BUILT_IN = 150
FLOOR_STEPS = 30_000
FLOOR_MS = 2.6
"""What the fixed piece of Python took on the machine on which the limits in milliseconds were set."""


@dataclass
class Report:
    """Collects figures and budgets, and prints them as the last line."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    budget: list[dict[str, object]] = field(default_factory=list)

    def within(self, what: str, value: float, limit: float, *, at_least: bool = False) -> None:
        good = value >= limit if at_least else value <= limit
        self.budget.append({"what": what, "value": round(value, 4), "limit": limit, "ok": good})

    def within_time(self, what: str, milliseconds: float, limit: float, *, cpu: bool = False) -> None:
        """A limit in milliseconds, judged as a ratio to a fixed piece of Python that is timed beside it."""
        self.figures.setdefault(f"{what}, ms", milliseconds)
        ratio = milliseconds / floor_milliseconds(cpu=cpu)
        self.ratios[what] = ratio
        self.within(f"{what}, ratio to a fixed piece of Python", ratio, round(limit / FLOOR_MS, 2))

    def print(self) -> None:
        for entry in self.budget:
            print(f"{'ok  ' if entry['ok'] else 'OVER'} {entry['what']}: {entry['value']} (limit {entry['limit']})")
        rounded = {
            "name": self.name,
            "figures": {key: round(value, 4) for key, value in self.figures.items()},
            "ratios": {key: round(value, 4) for key, value in self.ratios.items()},
            "budget": self.budget,
        }
        print(json.dumps(rounded))


def floor_milliseconds(*, cpu: bool) -> float:
    """The median time of a fixed piece of Python on this machine now: of CPU, or by the clock."""
    clock = time.process_time if cpu else time.perf_counter
    taken: list[float] = []
    for _ in range(25):
        began, total = clock(), 0
        for step in range(FLOOR_STEPS):
            total = (total * 31 + step) % 1_000_003
        taken.append((clock() - began) * 1000)
    return statistics.median(taken)


@dataclass(frozen=True)
class Hub:
    """A running hub under measurement."""

    process: subprocess.Popen[bytes]
    home: Path
    url: str
    token: str
    started: float

    def get(self, path: str) -> dict[str, object]:
        request = urllib.request.Request(self.url + path, headers={"X-Annabelle-Token": self.token})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def tree(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]


@contextlib.contextmanager
def running_hub(home: Path, environment: Mapping[str, str], timeout: float = 120) -> Iterator[Hub]:
    """Start a hub on a free port in an empty environment of its own, and stop it afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    clean = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    clean |= {"ANNABELLE_HOME": str(home), "ANNABELLE_PORT": "0", "THINKER_PORT": "0", **environment}
    started = time.perf_counter()
    with (home / "hub.out").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "annabelle.hub"], env=clean, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        address = _wait_for_address(home, process, started + timeout)
        token = (home / "annabelle.token").read_text().strip()
        yield Hub(process, home, address, token, started)
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_for_address(home: Path, process: subprocess.Popen[bytes], deadline: float) -> str:
    file = home / "run" / "hub.json"
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the hub stopped: {(home / 'hub.out').read_text()[-2000:]}")
        with contextlib.suppress(OSError, ValueError, KeyError):
            return str(json.loads(file.read_text())["url"])
        time.sleep(0.01)
    raise SystemExit("the hub did not start in time")


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    """CPU of these processes, and of the children they have already buried."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def pss_megabytes(processes: Sequence[psutil.Process]) -> float:
    """Memory in proportion to how it is shared, so that forked pages count once."""
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def wait_until(condition: object, timeout: float, what: str, every: float = 0.01) -> None:
    """Poll a callable until it is true; say what did not happen when it is not."""
    deadline = time.perf_counter() + timeout
    while time.perf_counter() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if condition():  # type: ignore[operator]
                return
        time.sleep(every)
    raise SystemExit(f"{what} did not happen within {timeout} s")


def wait_for_built_in_tools(hub: Hub) -> dict[str, object]:
    """The list of tools, once the built-in servers are up."""
    wait_until(lambda: len(hub.get("/tools/list")["tools"]) >= LEAST_BUILT_IN, 120, "the tool list")  # type: ignore[arg-type]
    return hub.get("/tools/list")


def data_arguments(about: str | None, holds: str) -> argparse.Namespace:
    """`data` and `provider` of a benchmark that reads public data; a folder that is not there ends it in a sentence."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {holds}")
    parser.add_argument("--provider", choices=("embedded", "none"), default="embedded", help="none: by words alone")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"{arguments.data} is not a folder.")
    return arguments


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def built_in_tools() -> ToolList:
    """As a hub lists them in an empty home."""
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder) / "home", {}) as hub:
        return ToolList.model_validate(wait_for_built_in_tools(hub))
