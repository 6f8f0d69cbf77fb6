"""One message, one tool call, two requests to a zero-latency model: durable, and the same loop without durability."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

from bare_loop import BareLoop
from measure import ROOT, Hub, Report, cpu_seconds, median, percentile, running_hub, wait_until

CALL = {"name": "filer_list_grants", "arguments": {}}
TEXT = json.dumps({"calls": [CALL], "say": "done"})
CPU_RATIO = 5.7
"""What a turn may take that remembers, selects, checks and writes everything down."""


@contextlib.contextmanager
def model_process() -> Iterator[str]:
    """The scripted model in a process of its own, so that its CPU is nobody else's."""
    command = [sys.executable, "-m", "support.scripted_model", "--port", "0", "--forget"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip().removeprefix("LISTENING_PORT=")
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def post(hub: Hub, path: str, body: dict[str, object]) -> dict[str, object]:
    headers = {"X-Annabelle-Token": hub.token, "Content-Type": "application/json"}
    request = urllib.request.Request(hub.url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def one_turn(hub: Hub) -> float:
    started = time.perf_counter()
    answer = post(hub, "/message?wait=60", {"text": TEXT, "channel": "http", "chatId": "bench"})
    reply = answer.get("reply") or {}
    if reply.get("text") != "done":  # type: ignore[union-attr]
        raise SystemExit(f"a turn went wrong: {answer}")
    return time.perf_counter() - started


def measured_processes(hub: Hub) -> list[psutil.Process]:
    """Hub, thinker, fork server and the servers; the client and the model are not ours to count."""
    return hub.tree()


async def bare_turns(hub: Hub, model_url: str, count: int) -> tuple[float, float]:
    """The same loop in one process with nothing written down: model, tool, model. CPU and p50 in ms per turn."""
    os.environ |= {
        "THINKER_LLM_PROVIDER": "compatible",
        "COMPATIBLE_BASE_URL": model_url,
        "COMPATIBLE_MODEL": "scripted",
    }
    loop = await BareLoop.open(hub.url, hub.token)
    await loop.turn(TEXT)
    processes = [psutil.Process(), *hub.tree()]
    before, times = cpu_seconds(processes), []
    for _ in range(count):
        started = time.perf_counter()
        await loop.turn(TEXT)
        times.append(time.perf_counter() - started)
    spent = cpu_seconds(processes) - before
    await loop.close()
    return spent / count * 1000, median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    count = parser.parse_args().turns
    report = Report("turn")
    with tempfile.TemporaryDirectory() as folder, model_process() as model_url:
        environment = {
            "THINKER_LLM_PROVIDER": "compatible",
            "COMPATIBLE_BASE_URL": model_url,
            "COMPATIBLE_MODEL": "scripted",
            "ANNABELLE_RATE_LIMIT_PER_MINUTE": "100000000",
            "THINKER_WARM_SPARE": "true",
        }
        home = Path(folder) / "home"
        (home / "config").mkdir(parents=True)
        # Two hundred turns within a minute are what cost control is there to stop.
        generous = {"agentId": "annabelle", "costControls": {"enabled": False}}
        (home / "config" / "agents.json").write_text(json.dumps({"agents": [generous]}))
        with running_hub(home, environment) as hub:
            wait_until(lambda: len(hub.get("/tools/list")["tools"]) >= 13, 60, "the tool list")  # type: ignore[arg-type]
            time.sleep(6)  # the warm spare is prepared once the hub is idle
            report.figures["first_turn_ms"] = one_turn(hub) * 1000
            time.sleep(4)  # the next spare is prepared now; it is no part of a turn
            before, times = cpu_seconds(measured_processes(hub)), []
            for _ in range(count):
                times.append(one_turn(hub))
            spent = cpu_seconds(measured_processes(hub)) - before
            bare_cpu, bare_p50 = asyncio.run(bare_turns(hub, model_url, min(count, 100)))
    early, late = median(times[:20]), median(times[-20:])
    report.figures |= {
        "cpu_ms": spent / count * 1000,
        "p50_ms": median(times) * 1000,
        "p95_ms": percentile(times, 0.95) * 1000,
        "early_p50_ms": early * 1000,
        "late_p50_ms": late * 1000,
        "bare_cpu_ms": bare_cpu,
        "bare_p50_ms": bare_p50,
    }
    figures = report.figures
    report.ratios = {
        "late_to_early": late / early,
        "cpu_to_bare": figures["cpu_ms"] / bare_cpu,
        "p50_to_bare": figures["p50_ms"] / bare_p50,
    }
    report.within(
        "CPU of hub, thinker and servers per turn, ratio to the bare loop", report.ratios["cpu_to_bare"], CPU_RATIO
    )
    report.within_time("p50 of a turn", figures["p50_ms"], 90)
    report.within("late turns, ratio to early ones", report.ratios["late_to_early"], 1.1)
    report.within_time("first message to its answer with the warm spare", figures["first_turn_ms"], 1000)
    report.print()


if __name__ == "__main__":
    main()
