"""From the command to the full tool list of every server: forked from the fork server, plain, and of small ones."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from measure import Hub, Report, cpu_seconds, median, pss_megabytes, running_hub, wait_until
from support.few_servers import NAMES, only

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


def boot(servers: Path | None, forkserver: bool) -> Boot:
    """With the made servers beside the filer, or with every server that comes with Annabelle."""
    with tempfile.TemporaryDirectory() as temporary:
        environment = {"NURSERY_ENABLED": "true" if forkserver else "false", "THINKER_WARM_SPARE": "false"}
        if servers is not None:
            environment |= {"EXTRA_SERVERS_PATH": str(servers), **only("filer")}
        wanted = len(NAMES) if servers is None else SMALL_SERVERS + 1
        with running_hub(Path(temporary) / "home", environment) as hub:
            wait_until(lambda: _ready_servers(hub) >= wanted, 60, "the full tool list", every=0.1)
            listed_after = time.perf_counter() - hub.started
            cpu = cpu_seconds(hub.tree())
            return Boot(listed_after, cpu, pss_megabytes(hub.tree()))


def _ready_servers(hub: Hub) -> int:
    servers = cast("list[dict[str, object]]", hub.get("/status")["servers"])
    return sum(server["state"] == "ready" for server in servers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        servers = Path(folder) / "bench_servers"
        make_servers(servers)
        boot(servers, forkserver=True)  # the first start compiles the made servers' bytecode
        small = [boot(servers, forkserver=True) for _ in range(runs)]
        forked = [boot(None, forkserver=True) for _ in range(runs)]
        plain = [boot(None, forkserver=False) for _ in range(runs)]
    report = Report("boot")
    for name, boots in (("small", small), ("forked", forked), ("plain", plain)):
        report.figures[f"{name}_listed_after_s"] = median([b.listed_after for b in boots])
        report.figures[f"{name}_cpu_s"] = median([b.cpu for b in boots])
        report.figures[f"{name}_pss_mb"] = median([b.pss for b in boots])
    figures = report.figures
    report.ratios = {
        "listed_after": figures["forked_listed_after_s"] / figures["plain_listed_after_s"],
        "cpu": figures["forked_cpu_s"] / figures["plain_cpu_s"],
        "cpu_to_small_servers": figures["forked_cpu_s"] / figures["small_cpu_s"],
    }
    report.within("CPU, ratio to nine small servers and the filer", report.ratios["cpu_to_small_servers"], 1.3)
    report.within("CPU, ratio to plain processes", report.ratios["cpu"], 0.35)
    report.within("time to tools, ratio to plain processes", report.ratios["listed_after"], 0.35)
    report.within("PSS without the warm spare, MB", figures["forked_pss_mb"], 300)
    report.print()


if __name__ == "__main__":
    main()
