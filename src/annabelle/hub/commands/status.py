"""`/status`: how Annabelle is doing."""

from __future__ import annotations

from datetime import timedelta

from annabelle.hub.commands.command import Button, Command, CommandAnswer, CommandCall, CommandInfo
from annabelle.hub.status import HubStatus


class StatusCommand(Command):
    info = CommandInfo(
        name="status",
        usage="[summary]",
        summary="How Annabelle is doing: servers, agents, warnings. “summary” for one line.",
        examples=("/status", "/status summary"),
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        if call.words not in ((), ("summary",)):
            raise self.wrong_usage(f"“{' '.join(call.words)}” is not known here.")
        now, stopped = self.deps.status.read(), self._describe_stopped()
        short = _summarise(now) + (f" {stopped}" if stopped else "")
        # What is wrong in the home is not for everybody who may talk.
        if call.words or not call.admin:
            return CommandAnswer(short)
        lines = [short, "", "Agents: " + "; ".join(_describe_agents(now)), f"Servers: {', '.join(_list_servers(now))}"]
        warnings = [f"{notice.level}: {notice.text}" for notice in now.notices if notice.level != "info"]
        lines += ["", *warnings] if warnings else []
        buttons = (Button("Log", "/logs"), Button("Cost", "/cost"), Button("Schedule", "/cron"))
        return CommandAnswer("\n".join(lines), buttons)

    def _describe_stopped(self) -> str:
        halts = self.deps.stopper.halts
        if halts.everything is not None:
            return "Everything is stopped."
        return f"Stopped: {', '.join(halts.stopped)}." if halts.stopped else ""


def _summarise(now: HubStatus) -> str:
    down = [server.name for server in now.servers if not server.available and server.state != "disabled"]
    warnings = sum(notice.level != "info" for notice in now.notices)
    turns = "1 turn runs" if now.turns_running == 1 else f"{now.turns_running} turns run"
    servers = f"{len(down)} servers down ({', '.join(down)})" if down else "all servers up"
    told = "" if not warnings else f", {warnings} {'warning' if warnings == 1 else 'warnings'}"
    uptime = timedelta(seconds=round(now.uptime_seconds))
    return f"Annabelle {now.version} is {now.status} for {uptime}: {turns}, {now.tool_count} tools, {servers}{told}."


def _describe_agents(now: HubStatus) -> list[str]:
    found: list[str] = []
    for agent in now.agents:
        state = "stopped" if agent.stopped else "paused" if agent.paused else agent.state
        why = f": {agent.pause_reason}" if agent.paused and agent.pause_reason else ""
        found.append(f"{agent.agent_id} ({state}{why})")
    return found


def _list_servers(now: HubStatus) -> list[str]:
    return [server.name if server.available else f"{server.name} ({server.state})" for server in now.servers]
