"""What a run gives back to the model."""

from __future__ import annotations

from pydantic import Field

from annabelle.servers.codexec.artifacts import Artifacts
from annabelle.servers.codexec.running import Outcome
from annabelle.servers.codexec.tape import shortened
from annabelle.servers.codexec.watch import Killed
from annabelle.servers.kit import Result
from annabelle.servers.kit.overflow import Overflow

_REASONS: dict[Killed, str] = {
    "time": "it took longer than it may",
    "memory": "it used more memory than it may",
    "processes": "it started more processes than it may",
    "output": "it wrote more output than it may",
    "disk": "it wrote more files than it may",
    "closed": "its session was closed",
}


class RunReport(Result):
    """How a run went."""

    exit_code: int | None = Field(default=None, description="What the program ended with; null if it was ended")
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    killed: str | None = Field(default=None, description="Why it was ended: time, memory, processes, output or disk")
    duration_ms: int = 0
    artifacts: list[str] = Field(default=[], description="Files it made or changed, as paths in the workspace")
    artifacts_left_out: int = Field(default=0, description="More files it made that are not listed or kept")
    rest: list[str] = Field(default=[], description="Files with the whole output, where it was too long to show")

    def text(self) -> str:
        parts = [part for part in (self.stdout.rstrip("\n"), _labelled("stderr", self.stderr)) if part]
        if self.killed is not None:
            parts.append(f"[ended after {self.duration_ms} ms: {_reason(self.killed)}]")
        elif self.exit_code:
            parts.append(f"[exit code {self.exit_code}]")
        if self.rest:
            parts.append(f"[the whole output is in {', '.join(self.rest)}]")
        if self.artifacts:
            more = f" and {self.artifacts_left_out} more" if self.artifacts_left_out else ""
            parts.append(f"[files: {', '.join(self.artifacts)}{more}]")
        elif self.artifacts_left_out:
            parts.append(f"[{self.artifacts_left_out} files were made that could not be kept]")
        return "\n".join(parts) or "[no output]"


async def run_report(outcome: Outcome, artifacts: Artifacts, overflow: Overflow, limit: int) -> RunReport:
    """The outcome with its output cut to `limit` characters for each stream; the whole goes to a file."""
    rest: list[str] = []
    shown: list[str] = []
    for name, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        whole = await overflow.show(text, limit, f"{name}.txt")
        shown.append(shortened(text, limit))
        rest += [whole.rest] if whole.rest is not None else []
    return RunReport(
        exit_code=outcome.exit_code,
        stdout=shown[0],
        stderr=shown[1],
        timed_out=outcome.timed_out,
        killed=outcome.killed,
        duration_ms=round(outcome.seconds * 1000),
        artifacts=list(artifacts.paths),
        artifacts_left_out=artifacts.left_out,
        rest=rest,
    )


def _reason(killed: str) -> str:
    return next((sentence for reason, sentence in _REASONS.items() if reason == killed), killed)


def _labelled(name: str, text: str) -> str:
    return f"{name}:\n{text.rstrip()}" if text.strip() else ""
