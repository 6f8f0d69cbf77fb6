"""The system under attack: a real hub with its thinkers and servers, kept alive as a service manager would."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from support.few_servers import only
from support.reaper import environment_mark
from support.standing_yes import let_pass
from support.timing import product_bounds, seconds
from support.warm_process import HUB, TEMPLATE, WarmProcess

TESTS = Path(__file__).resolve().parent.parent
PR_SET_CHILD_SUBREAPER = 36
FORK_SERVER = "nursery"
"""The name of its processes in the system's list."""


class System:
    """Starts the hub, starts it again whenever it dies, and finds its processes."""

    def __init__(self, folder: Path, model_url: str, database_url: str | None) -> None:
        self.home = folder / "home"
        self.failpoints = folder / "failpoints"
        self.witness = folder / "witness.jsonl"
        self.log = folder / "hub.out"
        for made in (self.home / "config", self.failpoints):
            made.mkdir(parents=True)
        self.witness.touch()
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "ANNABELLE_HOME": str(self.home),
            "ANNABELLE_PORT": "0",
            "THINKER_PORT": "0",
            "ANNABELLE_FAILPOINTS": str(self.failpoints),
            "ANNABELLE_RATE_LIMIT_PER_MINUTE": "1000000",
            "THINKER_LLM_PROVIDER": "compatible",
            "COMPATIBLE_BASE_URL": model_url,
            "COMPATIBLE_MODEL": "scripted",
            "AGENT_RESTART_BASE_SECONDS": "0.001",
            "EXTERNAL_SERVERS_NEED_YES": "false",
            "SERVER_RESTART_BASE_SECONDS": "0.05",
            "SERVER_MAX_RESTARTS": "100000",
            "RETRY_IMMEDIATE_SECONDS": "0.1",
            "RETRY_BASE_SECONDS": "0.2",
            **only("memory"),
            **product_bounds(),
            **environment_mark(),
        }
        if database_url is not None:
            self._environment["DATABASE_URL"] = database_url
        self._write_external_servers()
        # A run spends more tokens in minutes than a person does in a day; cost control would pause the agent.
        agent = {"agentId": "annabelle", "costControls": {"enabled": False}}
        (self.home / "config" / "agents.json").write_text(json.dumps({"agents": [agent]}))
        # Whatever outlives its parent is handed to us, so an orphan can not hide.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._process: WarmProcess | None = None
        self._stopping = threading.Event()
        self._guard = threading.Thread(target=self._keep_alive, daemon=True)
        self.starts = 0

    def _write_external_servers(self) -> None:
        server = {
            "command": sys.executable,
            "args": [str(TESTS / "support" / "witness_server.py")],
            "env": {"WITNESS_FILE": str(self.witness), "ANNABELLE_FAILPOINTS": str(self.failpoints)},
        }
        (self.home / "config" / "external-mcps.json").write_text(json.dumps({"mcpServers": {"witness": server}}))

    def start(self) -> None:
        let_pass(self.home, self._environment.get("DATABASE_URL"), witness_mark=("key",), witness_touch=("key",))
        self._guard.start()
        self.wait_ready()

    def _keep_alive(self) -> None:
        while not self._stopping.is_set():
            with self.log.open("ab") as log:
                self._process = TEMPLATE.spawn_into(HUB, self._environment, log)
            self.starts += 1
            self._process.wait()
            time.sleep(0.05)

    def wait_ready(self, timeout: float = 60) -> None:
        deadline = time.monotonic() + seconds(timeout)
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError, KeyError):
                if any(tool["name"] == "witness_mark" for tool in self.request("GET", "/tools/list")["tools"]):
                    return
            time.sleep(0.05)
        raise AssertionError(f"the hub was not ready in time: {self.log.read_text()[-3000:]}")

    def request(self, method: str, path: str, body: dict[str, object] | None = None, timeout: float = 30) -> dict:
        """One API request to whichever hub is alive now; raises OSError when none is."""
        where = json.loads((self.home / "run" / "hub.json").read_text())["url"]
        token = (self.home / "annabelle.token").read_text().strip()
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-Annabelle-Token": token, "Content-Type": "application/json"}
        request = urllib.request.Request(where + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            raise OSError(str(error)) from error

    def insist(self, method: str, path: str, body: dict[str, object] | None = None, timeout: float = 120) -> dict:
        """The same, repeated until a hub answers: what a client does that wants its message through."""
        deadline = time.monotonic() + seconds(timeout)
        while True:
            try:
                return self.request(method, path, body)
            except (OSError, ValueError, KeyError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def expect_running(self) -> None:
        """Raise where an agent is paused: no turn would end any more."""
        for agent in self.insist("GET", "/agents")["agents"]:
            if agent["paused"]:
                raise AssertionError(f"the agent {agent['agentId']} was paused: {agent['pauseReason']}")

    def processes(self, target: str) -> list[psutil.Process]:
        """The living processes of one kind, recognised by what they run."""
        hub = self._process
        if hub is None or hub.poll() is not None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(hub.pid)
            if target == "hub":
                return [root]
            return [child for child in root.children(recursive=True) if self._kind(child) == target]
        return []

    @staticmethod
    def _kind(process: psutil.Process) -> str:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if process.name() == FORK_SERVER:
                return "forkserver"
            if process.name().startswith("thinker-"):
                return "thinker"
            parent = process.parent()
            if "witness_server" in " ".join(process.cmdline()) or (parent is not None and parent.name() == FORK_SERVER):
                return "server"
        return "other"

    def kill_one(self, target: str, chance: random.Random, timeout: float = 60) -> bool:
        """Kill a living process of this kind; one that has just died is waited for."""
        deadline = time.monotonic() + seconds(timeout)
        while time.monotonic() < deadline:
            with contextlib.suppress(psutil.NoSuchProcess, IndexError):
                chance.choice(self.processes(target)).send_signal(signal.SIGKILL)
                return True
            time.sleep(0.02)
        return False

    def orphans(self) -> list[str]:
        """Processes handed to us that are not the hub: each one is a leak. The dead ones are buried here."""
        ours = os.getpid()
        hub = self._process.pid if self._process is not None else None
        left: list[str] = []
        for child in psutil.Process(ours).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.pid in (hub, TEMPLATE.pid) or not self._is_ours(child):
                    continue
                if child.status() == psutil.STATUS_ZOMBIE:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(child.pid, os.WNOHANG)
                    continue
                left.append(f"{child.pid} {' '.join(child.cmdline())[:120]}")
        return left

    @staticmethod
    def _is_ours(process: psutil.Process) -> bool:
        command = " ".join(process.cmdline())
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return zombie or "annabelle." in command or "witness_server" in command

    def stop(self) -> int:
        """Stop the hub as a service manager does; its exit code."""
        self._stopping.set()
        process = self._process
        assert process is not None
        process.terminate()
        self._guard.join(seconds(60))
        return process.wait(seconds(5))

    def end(self) -> None:
        """Whatever state it is in, it is gone afterwards."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
