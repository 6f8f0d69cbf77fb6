"""Starts Chromium so that everything it asks of the network goes through the gate."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from annabelle.core.errors import Unavailable
from annabelle.servers.kit import deferred_module
from annabelle.servers.web.config import BrowserConfig
from annabelle.servers.web.finding import find_browser, require_driver
from annabelle.servers.web.gate import Gate
from annabelle.servers.web.profile import INCOMING, prepare_profile

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import BrowserContext, Playwright
else:
    async_api = deferred_module("playwright.async_api")

_log = logging.getLogger(__name__)

_ENVIRONMENT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
_ARGUMENTS = (
    # Names are looked up by the gate alone, and nothing goes around it: not QUIC, not WebRTC, not a prefetch.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-pings",
    "--disable-crash-reporter",
)
_SANDBOX_COMPLAINTS = ("no usable sandbox", "sandboxing failed", "suid sandbox helper", "move to new namespace")


class Driver:
    """The program between this process and the browsers; it runs while there is one."""

    def __init__(self, config: BrowserConfig) -> None:
        self._config = config
        self._playwright: Playwright | None = None
        self._lock = asyncio.Lock()

    async def launch(self, profile: Path, gate: Gate) -> BrowserContext:
        """A browser on a profile. One sentence says why when there is none."""
        require_driver()
        program = find_browser(self._config.path)
        await prepare_profile(profile)
        address = await gate.start()
        before = self._playwright
        try:
            return await self._launch(program, profile, gate, address)
        except async_api.Error as error:
            if before is None or await _answers(before):
                raise _explain(error.message) from None
        _log.warning("the driver of the browsers had ended; it is started again")
        await self.stop()
        try:
            return await self._launch(program, profile, gate, address)
        except async_api.Error as error:
            raise _explain(error.message) from None

    async def _launch(self, program: Path, profile: Path, gate: Gate, address: str) -> BrowserContext:
        root = sys.platform != "win32" and os.geteuid() == 0
        if root:
            _log.warning("Running as root: Chromium has no sandbox of its own then, so it is started without one.")
        playwright = await self._started()
        return await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=program,
            headless=self._config.headless,
            chromium_sandbox=not root,
            accept_downloads=True,
            downloads_path=profile / INCOMING,
            env=_environment(profile),
            proxy={"server": address, "username": gate.user, "password": gate.password, "bypass": "<-loopback>"},
            ignore_default_args=["--disable-popup-blocking"],
            args=list(_ARGUMENTS),
            timeout=self._config.patience.start * 1000,
        )

    async def _started(self) -> Playwright:
        async with self._lock:
            if self._playwright is None:
                await asyncio.to_thread(importlib.import_module, "playwright.async_api")
                async with asyncio.timeout(self._config.patience.start):
                    self._playwright = await async_api.async_playwright().start()
            return self._playwright

    async def stop(self) -> None:
        async with self._lock:
            playwright, self._playwright = self._playwright, None
            if playwright is not None:
                with contextlib.suppress(TimeoutError, async_api.Error):
                    async with asyncio.timeout(5):
                        await playwright.stop()


async def _answers(playwright: Playwright) -> bool:
    """Whether the driver still runs: the browsers of other agents hang on it."""
    try:
        async with asyncio.timeout(5):
            probe = await playwright.request.new_context()
            await probe.dispose()
    except (TimeoutError, async_api.Error):
        return False
    return True


def _environment(profile: Path) -> dict[str, str | float | bool]:
    """What the browser sees: nothing of Annabelle's. On Linux even its home is the profile, so nothing is left in
    the user's own."""
    chosen: dict[str, str | float | bool] = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return chosen | ({"HOME": str(profile)} if sys.platform == "linux" else {})


def _explain(message: str) -> Unavailable:
    # The message ends with the command that was run, and that names the sandbox whatever went wrong.
    if any(complaint in message.lower() for complaint in _SANDBOX_COMPLAINTS):
        return Unavailable(
            "Chromium could not be started because this system forbids its sandbox.",
            hint="Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1).",
        )
    if "DISPLAY" in message or "headed browser" in message:
        return Unavailable("There is no screen to show the browser on.", hint="Set BROWSER_HEADLESS=true.")
    return Unavailable(
        "The browser could not be started.",
        hint="Check that it starts by itself, or set BROWSER_PATH to another one. If it has worked before, its profile "
        "may be damaged: move data/browser in the home away, with the logins in it.",
    )
