"""Starts Chromium behind the proxy on an agent's profile, which keeps nothing that was typed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import json
import logging
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from annabelle.core.errors import StorageTrouble, Unavailable
from annabelle.servers.kit import deferred_module, in_thread
from annabelle.servers.web.config import BrowserConfig, find_browser, require_driver
from annabelle.servers.web.proxy import EgressProxy

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import BrowserContext, Playwright
else:
    async_api = deferred_module("playwright.async_api")


_PREFERENCES = Path("Default") / "Preferences"
_PILES = ("Default/Sessions", "Default/Cache", "Default/Code Cache", "segmentation_platform")
_FILES = ("Default/History*", "Default/Favicons*", "Default/Top Sites*", "Default/Shortcuts*", "Default/Visited Links")
"""Saved forms, cached pages that may repeat what was sent, and URLs that may contain it."""
_QUIET: dict[str, dict[str, object]] = {
    "autofill": {"enabled": False, "profile_enabled": False, "credit_card_enabled": False},
    "profile": {"password_manager_enabled": False},
}


def disable_form_memory(profile: Path) -> None:
    """Before a start: switch off autofill and remove what a killed browser has left."""
    remove_typed_traces(profile)
    file = profile / _PREFERENCES
    try:
        read: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        read = {}
    known = cast("dict[str, object]", read) if isinstance(read, dict) else {}
    for name, wanted in _QUIET.items():
        before = known.get(name)
        known[name] = {**(cast("dict[str, object]", before) if isinstance(before, dict) else {}), **wanted}
    known["credentials_enable_service"] = False
    with contextlib.suppress(OSError):  # a full disk is reported when the browser starts
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(json.dumps(known), encoding="utf-8")


def remove_typed_traces(profile: Path) -> None:
    """After an end: remove what cannot be switched off. Logins and cookies stay."""
    for pile in _PILES:
        shutil.rmtree(profile / pile, ignore_errors=True)
    for name in _FILES:
        for file in profile.glob(name):
            with contextlib.suppress(OSError):
                file.unlink()


INCOMING = "Incoming"
"""Folder for unfinished downloads."""

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LOCKS = ("SingletonLock", "SingletonCookie", "SingletonSocket")
_LEAVE_SECONDS = 5.0
_LOOK_SECONDS = 0.1


def profile_folder(profiles: Path, agent: str) -> Path:
    """Folder of an agent's profile. Ids that are not plain lower case are hashed, so that none collide on any disk."""
    name = agent if _PLAIN.fullmatch(agent) else f"agent-{hashlib.sha256(agent.encode(errors='replace')).hexdigest()}"
    return profiles / name[:72]


async def prepare_profile(profile: Path) -> None:
    """Create the profile, and remove what a killed browser has left."""
    await in_thread(lambda _stop: _make_profile(profile))
    await _wait_for_owner(profile)
    await in_thread(lambda _stop: _clear_profile(profile))


def _make_profile(profile: Path) -> None:
    try:
        profile.mkdir(parents=True, exist_ok=True, mode=0o700)
        profile.parent.chmod(0o700)
    except OSError as error:
        raise StorageTrouble(
            f"The browser's profile can not be made: {error.strerror}.", hint="Check the permissions of the home."
        ) from error


def _clear_profile(profile: Path) -> None:
    for name in _LOCKS:
        with contextlib.suppress(OSError):
            (profile / name).unlink(missing_ok=True)
    shutil.rmtree(profile / INCOMING, ignore_errors=True)
    disable_form_memory(profile)


async def _wait_for_owner(profile: Path) -> None:
    """Wait for a browser whose server was killed: it ends within moments and uses the profile until then."""
    until = time.monotonic() + _LEAVE_SECONDS
    while (owner := _read_owner(profile)) is not None and _uses_profile(owner, profile):
        if time.monotonic() > until:
            raise Unavailable(
                f"Another browser (process {owner}) still uses this agent's profile.", hint="Close it and call again."
            )
        await asyncio.sleep(_LOOK_SECONDS)


def _read_owner(profile: Path) -> int | None:
    """Process id in the lock, which is a link to `host-pid`."""
    try:
        number = os.readlink(profile / _LOCKS[0]).rsplit("-", 1)[-1]
    except OSError:
        return None
    return int(number) if number.isdecimal() else None


def _uses_profile(process: int, profile: Path) -> bool:
    """Whether this process is a browser on this profile. After a crash its pid may have been reused."""
    if sys.platform == "linux":
        try:
            return os.fsencode(profile) in Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return False
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


_log = logging.getLogger(__name__)

_ENVIRONMENT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
_ARGUMENTS = (
    # Only the proxy resolves names, and nothing bypasses it: no QUIC, WebRTC or prefetch.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-pings",
    "--disable-crash-reporter",
)
_SANDBOX_COMPLAINTS = ("no usable sandbox", "sandboxing failed", "suid sandbox helper", "move to new namespace")


class BrowserLauncher:
    """Starts browsers through the Playwright driver, which runs while there is one."""

    def __init__(self, config: BrowserConfig) -> None:
        self._config = config
        self._playwright: Playwright | None = None
        self._lock = asyncio.Lock()

    async def launch(self, profile: Path, proxy: EgressProxy) -> BrowserContext:
        """Start a browser on a profile. Raises Unavailable with the reason if it does not start."""
        require_driver()
        program = find_browser(self._config.path)
        await prepare_profile(profile)
        address = await proxy.start()
        before = self._playwright
        try:
            return await self._launch(program, profile, proxy, address)
        except async_api.Error as error:
            if before is None or await _driver_responds(before):
                raise _launch_error(error.message) from None
        _log.warning("the driver of the browsers had ended; it is started again")
        await self.stop()
        try:
            return await self._launch(program, profile, proxy, address)
        except async_api.Error as error:
            raise _launch_error(error.message) from None

    async def _launch(self, program: Path, profile: Path, proxy: EgressProxy, address: str) -> BrowserContext:
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
            proxy={"server": address, "username": proxy.user, "password": proxy.password, "bypass": "<-loopback>"},
            ignore_default_args=["--disable-popup-blocking"],
            args=list(_ARGUMENTS),
            timeout=self._config.timeouts.start * 1000,
        )

    async def _started(self) -> Playwright:
        async with self._lock:
            if self._playwright is None:
                await asyncio.to_thread(importlib.import_module, "playwright.async_api")
                async with asyncio.timeout(self._config.timeouts.start):
                    self._playwright = await async_api.async_playwright().start()
            return self._playwright

    async def stop(self) -> None:
        async with self._lock:
            playwright, self._playwright = self._playwright, None
            if playwright is not None:
                with contextlib.suppress(TimeoutError, async_api.Error):
                    async with asyncio.timeout(5):
                        await playwright.stop()


async def _driver_responds(playwright: Playwright) -> bool:
    """Whether the driver still runs. The browsers of other agents depend on it."""
    try:
        async with asyncio.timeout(5):
            probe = await playwright.request.new_context()
            await probe.dispose()
    except (TimeoutError, async_api.Error):
        return False
    return True


def _environment(profile: Path) -> dict[str, str | float | bool]:
    """Environment without Annabelle's variables. On Linux HOME is the profile, so the user's home stays clean."""
    chosen: dict[str, str | float | bool] = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return chosen | ({"HOME": str(profile)} if sys.platform == "linux" else {})


def _launch_error(message: str) -> Unavailable:
    # The message ends with the command line, which always mentions the sandbox.
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
