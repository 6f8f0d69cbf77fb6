"""`python -m annabelle.hub`: lock the home, start the fork server, then import the heavy modules.

The fork server imports its libraries at the same time, which halves the start-up time.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import traceback

from annabelle.core.errors import AnnabelleError, explain_shortage
from annabelle.core.home import HUB_ARGUMENTS, Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings, load_settings
from annabelle.core.trace import configure_logging
from annabelle.hub.instance import bind_port, lock_home
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.process.forkserver_process import ForkServerProcess, can_use_forkserver, start_forkserver


def main() -> int:
    """Run the hub. The exit code tells who has to act (core.errors)."""
    try:
        home = Home.from_environment()
        restored = _restore_if_asked(home)
        home.prepare()
        settings = load_settings(home)
        redact = Redactor.from_environment()
        configure_logging("hub", home.logs, settings.log_level, redact, to_stderr=sys.stderr.isatty())
        lock = lock_home(home)
        try:
            again = _run(home, settings, redact, restored)
        finally:
            lock.release()
        if again:
            os.execv(sys.executable, [sys.executable, *HUB_ARGUMENTS])
    except Exception as error:  # the edge of the process
        known = error if isinstance(error, AnnabelleError) else explain_shortage(error)
        if known is None:
            logging.getLogger(__name__).exception("The hub failed")
            traceback.print_exc()
            return 1
        if logging.getLogger().handlers:  # without handlers, logging would print it on stderr a second time
            logging.getLogger(__name__).error("%s", known.message)
        sys.stderr.write(f"{known.message}{' ' + known.hint if known.hint else ''}\n")
        return known.exit_code
    return 0


def _restore_if_asked(home: Home) -> str | None:
    if not home.restore_file.exists():
        return None
    from annabelle.store.home_restore import restore_requested  # noqa: PLC0415

    told = restore_requested(home)
    os.chdir(home.root)  # the folder of this name is another one now
    return told


def _run(home: Home, settings: Settings, redact: Redactor, restored: str | None) -> bool:
    with bind_port(settings.annabelle_port) as sock:
        forkserver = _start_forkserver(home, settings)
        # Imports make no garbage, and collecting takes a fifth of the time. Boot enables it again.
        gc.disable()
        try:
            # Imported while the fork server does the same.
            from annabelle.hub.base_setup import HubStart  # noqa: PLC0415
            from annabelle.hub.boot import run  # noqa: PLC0415
        except BaseException:
            if forkserver is not None:
                forkserver.process.kill()
            raise
        return run(HubStart(home, settings, redact, sock, forkserver, restored=restored))


def _start_forkserver(home: Home, settings: Settings) -> ForkServerProcess | None:
    if not settings.nursery_enabled or not can_use_forkserver():
        return None
    config = ToolboxConfig.from_settings(settings, home, {})
    return start_forkserver(config.preload, config.python_path, home.logs / "nursery.log")


if __name__ == "__main__":
    sys.exit(main())
