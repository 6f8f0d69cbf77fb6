"""Real hub processes for tests, and a client that talks to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import httpx2 as httpx
import psutil

from annabelle.core.home import Home
from support import timing
from support.few_servers import FEW_SERVERS
from support.reaper import environment_mark
from support.warm_process import HUB, TEMPLATE, WarmProcess, can_fork

T = TypeVar("T")
START_SECONDS = 60.0
MAX_WAIT_SECONDS = 600.0  # the most that the API takes


def wait_for(look: Callable[[], T | None], what: str, seconds: float = 30.0) -> T:
    """Look until there is something to see: often at first, then less, as a look has its price."""
    deadline = time.monotonic() + timing.seconds(seconds)
    pause = 0.02
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {timing.seconds(seconds):g} s")
        time.sleep(pause)
        pause = min(pause * 1.1, 0.1)


class HubProcess:
    """A hub on a home of its own, with a scripted model: forked, or `python -m annabelle.hub` where that differs."""

    def __init__(self, home: Home, model_url: str = "http://127.0.0.1:9/v1", **settings: str) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.root.parent),
            "ANNABELLE_HOME": str(home.root),
            "ANNABELLE_PORT": "0",
            "ANNABELLE_RATE_LIMIT_PER_MINUTE": "1000000",
            "THINKER_PORT": "0",
            "THINKER_WARM_SPARE": "false",
            "THINKER_LLM_PROVIDER": "compatible",
            "COMPATIBLE_BASE_URL": model_url,
            "COMPATIBLE_MODEL": "scripted",
            "AGENT_RESTART_BASE_SECONDS": "0.05",
            "EXTERNAL_SERVERS_NEED_YES": "false",  # tests of the yes itself ask for it
            "RETRY_IMMEDIATE_SECONDS": "0.05",
            "RETRY_BASE_SECONDS": "0.1",
            **FEW_SERVERS,
            **timing.product_bounds(),
            **environment_mark(),
            **settings,
        }
        if "PYTHONPATH" in os.environ:
            self.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
        self._process: subprocess.Popen[str] | WarmProcess | None = None
        self._client: httpx.Client | None = None

    def spawn(self) -> subprocess.Popen[str] | WarmProcess:
        """Start the process and do not wait for anything."""
        if can_fork(self.environment):
            return TEMPLATE.spawn(HUB, self.environment)
        return subprocess.Popen(
            [sys.executable, "-m", "annabelle.hub"],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start(self) -> HubProcess:
        self._process = self.spawn()
        wait_for(self._ready, "a ready hub", START_SECONDS)
        self._client = httpx.Client(
            base_url=self.url, headers={"X-Annabelle-Token": self.token}, timeout=MAX_WAIT_SECONDS + 10
        )
        return self

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the hub ended with {self._process.returncode}: {self._process.communicate()[1]}")
        return self.home.hub_file.exists() and self.about["pid"] == self._process.pid

    @property
    def about(self) -> dict[str, object]:
        return json.loads(self.home.hub_file.read_text())

    @property
    def url(self) -> str:
        return str(self.about["url"])

    @property
    def token(self) -> str:
        return self.home.token_file.read_text().strip()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def http(self) -> httpx.Client:
        assert self._client is not None
        return self._client

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def thinkers(self) -> list[psutil.Process]:
        return [child for child in self.children() if child.name().startswith("thinker-")]

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self, seconds: float = 30) -> int:
        """Wait for the end; the exit code."""
        assert self._process is not None
        code = self._process.wait(timing.seconds(seconds))
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._client is not None:
            self._client.close()
            self._client = None
        self._process = None
        return code

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def end(self) -> None:
        """Whatever state it is in, it is gone afterwards."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.terminate()
                try:
                    self._process.wait(timing.seconds(20))
                except subprocess.TimeoutExpired:
                    self._process.kill()
            self.wait()

    def say(self, text: str, wait: float = 60, **more: object) -> dict[str, object]:
        wait = min(timing.seconds(wait), MAX_WAIT_SECONDS)
        answer = self.http.post("/message", params={"wait": wait}, json={"text": text, **more}, timeout=wait + 10)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def log(self) -> str:
        return (self.home.logs / "hub.log").read_text()


def sse(lines: Iterator[str]) -> Iterator[dict[str, object]]:
    """The events of a stream, with their ids."""
    event: dict[str, object] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if not line:
            if "data" in event:
                yield event
            event = {}
        elif name == "id":
            event["id"] = int(value)
        elif name == "event":
            event["event"] = value
        elif name == "data":
            event["data"] = json.loads(value)


def fresh_home(folder: Path) -> Home:
    return Home(folder / "home").prepare()
