"""Caches the tool list of every server before the first start: `python -m annabelle.servers.kit.prepare`.

Made at install time, it also serves an install that nobody may write to later. Each server is put together in a child
of its own, on an empty home, so that its listing depends on its own sources only. What cannot be built is
passed over: the start says why, and makes the listing itself.
"""

from __future__ import annotations

import importlib
import logging
import os
import tempfile
from pathlib import Path
from typing import NoReturn

from annabelle.servers.kit.tool_list_cache import read_listing, write_listing

_SERVERS = Path(__file__).parent.parent


def main() -> None:
    logging.basicConfig()
    packages = [f"annabelle.servers.{path.parent.name}" for path in sorted(_SERVERS.glob("*/manifest.toml"))]
    stale = [package for package in packages if read_listing(package) is None]
    if not stale or not hasattr(os, "fork"):
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ.clear()
        os.environ.update({"HOME": folder, "ANNABELLE_HOME": f"{folder}/home"})
        for package in stale:
            child = os.fork()
            if child == 0:
                _keep(package)
            os.waitpid(child, 0)


def _keep(package: str) -> NoReturn:
    try:
        write_listing(package, importlib.import_module(f"{package}.server").build())
    except BaseException:  # the end of a process: whatever it was, the next server has its own
        logging.exception("%s cannot be listed in advance", package)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
