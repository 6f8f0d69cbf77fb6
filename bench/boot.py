"""From the command to the full tool list of ten servers: forked from the nursery, and as plain processes."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measure import Report, cpu_seconds, median, pss_megabytes, running_hub, wait_until

SMALL_SERVERS = 9
TOOLS_EACH = 8

_SERVER = '''"""A small server made by the boot benchmark."""

from typing import Annotated

from pydantic import Field

from annabelle.servers.kit import Result, ToolServer, run, tool

Text = Annotated[str, Field(description="What to say")]
Count = Annotated[int, Field(description="How often")]


class Said(Result):
    said: str


{functions}


def main() -> None:
    run(lambda: ToolServer("{name}", [{names}]))


if __name__ == "__main__":
    main()
'''
_FUNCTION = '''
@tool(read_only=True, destructive=False, idempotent=True, open_world=False)
async def tool_{number}(text: Text, count: Count = 1) -> Said:
    """Say the text back, several times over."""
    return Said(said=text * count)

'''
_MANIFEST = """name = "{name}"
label = "{name}"
group = "Bench"
"""


@dataclass(frozen=True)
class Boot:
    listed_after: float
    cpu: float
    pss: float


def make_servers(folder: Path) -> None:
    """Nine packages in the shape of a built-in server."""
    for number in range(SMALL_SERVERS):
        name = f"small{number}"
        package = folder / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "manifest.toml").write_text(_MANIFEST.format(name=name))
        functions = "".join(_FUNCTION.format(number=index) for index in range(TOOLS_EACH))
        names = ", ".join(f"tool_{index}" for index in range(TOOLS_EACH))
        (package / "__main__.py").write_text(_SERVER.format(name=name, functions=functions, names=names))


def boot(servers: Path, nursery: bool) -> Boot:
    with tempfile.TemporaryDirectory() as temporary:
        environment = {
            "EXTRA_SERVERS_PATH": str(servers),
            "NURSERY_ENABLED": "true" if nursery else "false",
            "THINKER_WARM_SPARE": "false",
        }
        with running_hub(Path(temporary) / "home", environment) as hub:
            wanted = SMALL_SERVERS * TOOLS_EACH + 13
            wait_until(lambda: len(hub.get("/tools/list")["tools"]) >= wanted, 60, "the full tool list")  # type: ignore[arg-type]
            listed_after = time.perf_counter() - hub.started
            cpu = cpu_seconds(hub.tree())
            return Boot(listed_after, cpu, pss_megabytes(hub.tree()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        servers = Path(folder) / "bench_servers"
        make_servers(servers)
        boot(servers, nursery=True)  # the first start compiles the made servers' bytecode
        forked = [boot(servers, nursery=True) for _ in range(runs)]
        plain = [boot(servers, nursery=False) for _ in range(runs)]
    report = Report("boot")
    for name, boots in (("forked", forked), ("plain", plain)):
        report.figures[f"{name}_listed_after_s"] = median([b.listed_after for b in boots])
        report.figures[f"{name}_cpu_s"] = median([b.cpu for b in boots])
        report.figures[f"{name}_pss_mb"] = median([b.pss for b in boots])
    figures = report.figures
    report.ratios = {
        "listed_after": figures["forked_listed_after_s"] / figures["plain_listed_after_s"],
        "cpu": figures["forked_cpu_s"] / figures["plain_cpu_s"],
    }
    report.within("CPU of all processes, s", figures["forked_cpu_s"], 3.5)
    report.within("tools listed after the command, s", figures["forked_listed_after_s"], 2.5)
    report.within("CPU, ratio to plain processes", report.ratios["cpu"], 0.35)
    report.within("time to tools, ratio to plain processes", report.ratios["listed_after"], 0.35)
    report.within("PSS without the warm spare, MB", figures["forked_pss_mb"], 260)
    report.print()


if __name__ == "__main__":
    main()
