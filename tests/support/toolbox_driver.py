"""A process that is nothing but a running toolbox, made to be killed: `python -m support.toolbox_driver HOME MODE`.

It prints one line of JSON with the pids of its servers, and then serves until it dies.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from annabelle.core.home import Home
from annabelle.core.tools import CallContext
from annabelle.toolbox.config import ManifestFolder, ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from support.toolbox import QUICK, SERVERS, TESTS, MemoryJournal


async def main(root: Path, mode: str) -> None:
    home = Home(root).prepare()
    config = ToolboxConfig(
        home=home,
        environment=dict(os.environ),
        external_file=home.config / "external-mcps.json",
        manifest_folders=(ManifestFolder(root / "manifests", "support.servers"),),
        limits=QUICK,
        external_need_approval=False,
        python_path=(str(TESTS),),
        use_forkserver=mode == "forkserver",
    )
    (root / "manifests").mkdir(exist_ok=True)
    for name in ("echo", "awkward"):
        (root / "manifests" / name).symlink_to(SERVERS / name)
    toolbox = Toolbox(ToolServers(config, MemoryJournal()))
    await toolbox.start()
    left = await toolbox.call("awkward_leave_a_child", {}, CallContext(caller="hub", user_id="owner"))
    pids = {status.name: status.pid for status in toolbox.servers()}
    sys.stdout.write(json.dumps({"servers": pids, "left": left.structured}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
