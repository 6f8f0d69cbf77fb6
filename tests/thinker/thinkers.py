"""Thinker processes as a hub would have them: adopted, asked over HTTP, killed at will."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2 as httpx

from annabelle.core.contract import TOKEN_HEADER, AgentProfile, ThinkerBoot, TurnBrief, TurnState
from annabelle.core.ids import new_id
from support import timing
from support.warm_process import TEMPLATE

SECRET = "the-secret-of-this-process"
PATIENCE = 60.0
MAX_WAIT_SECONDS = 600.0  # the most that a thinker takes


class Thinker:
    """One thinker process. Leaving the `with` block kills it."""

    def __init__(self, home: Path, errors: Path) -> None:
        with errors.open("ab") as log:
            bare = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
            self._process, self._stdin, self._stdout = TEMPLATE.fork_with_pipes(
                "annabelle.thinker.boot", bare, errors=log.fileno()
            )
        self._home = home
        self.port = 0
        self.client = httpx.Client()

    def adopt(self, hub_url: str, settings: dict[str, str], profile: AgentProfile, *, port: int = 0) -> Thinker:
        """Give it an agent and wait until it is ready, or has died of a failpoint in a turn it took up again."""
        self.hand_over(hub_url, settings, profile, port=port)
        line = self.line()
        assert line.startswith("LISTENING_PORT="), line
        self.port = int(line.partition("=")[2])
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={TOKEN_HEADER: SECRET},
            timeout=MAX_WAIT_SECONDS,
            trust_env=False,
        )
        wait_for(lambda: not self.alive or self.client.get("/health").status_code == 200)
        return self

    def hand_over(self, hub_url: str, settings: dict[str, str], profile: AgentProfile, *, port: int = 0) -> None:
        environment = {"ANNABELLE_HOME": str(self._home), **settings}
        boot = ThinkerBoot(agent=profile, hub_url=hub_url, secret=SECRET, port=port, environment=environment)
        self._stdin.write(boot.model_dump_json().encode() + b"\n")
        self._stdin.flush()

    def line(self) -> str:
        """The next line of its standard output; empty at the end."""
        return self._stdout.readline().decode().removesuffix("\n")

    def close_input(self) -> None:
        self._stdin.close()

    def ask(self, brief: TurnBrief, wait: float = PATIENCE) -> TurnState:
        reply = self.client.post(
            f"/process-message?wait={min(timing.seconds(wait), MAX_WAIT_SECONDS)}", content=brief.model_dump_json()
        )
        reply.raise_for_status()
        return TurnState.model_validate_json(reply.content)

    def state(self, message_id: str, wait: float = PATIENCE) -> TurnState:
        reply = self.client.get(f"/turns/{message_id}?wait={min(timing.seconds(wait), MAX_WAIT_SECONDS)}")
        reply.raise_for_status()
        return TurnState.model_validate_json(reply.content)

    def events(self, message_id: str, after: int = 0, stream: str = "") -> list[dict[str, Any]]:
        """All events of a turn; returns when it is over."""
        reply = self.client.get(
            f"/turns/{message_id}/events", params={"after": after, "stream": stream} if stream else {}
        )
        reply.raise_for_status()
        return [json.loads(line) for line in reply.text.splitlines()]

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self, number: int = signal.SIGKILL) -> None:
        self._process.send_signal(number)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_gone(self) -> None:
        self._process.wait(timing.seconds(PATIENCE))

    def __enter__(self) -> Thinker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()
        self.kill()
        self.wait_until_gone()
        self._stdin.close()
        self._stdout.close()


def wait_for(condition: Any, seconds: float = PATIENCE) -> None:
    """Look again and again until it is so; fail when it takes too long."""
    deadline = time.monotonic() + timing.seconds(seconds)
    while True:
        try:
            if condition():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def brief(text: str, *, thread_id: str = "thr_one", **fields: Any) -> TurnBrief:
    return TurnBrief(
        message_id=fields.pop("message_id", None) or new_id("msg"),
        thread_id=thread_id,
        trace_id=fields.pop("trace_id", None) or new_id("tr"),
        channel="test",
        chat_id="chat",
        sender_id="someone",
        text=text,
        **fields,
    )
