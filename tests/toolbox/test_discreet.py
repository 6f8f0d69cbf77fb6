"""Secrets of the home: no agent's call carries one, and no result, error or log brings one back."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from annabelle.core.errors import NotAllowed, ServerDown
from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.external.entries import entry_values, find_argument_secrets, find_entry_secrets, read_entries
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.middleware.secrets import RedactOutput, RejectSecrets
from annabelle.toolbox.process.stderr_capture import StderrCapture

KEY = "kelmarsh-9917-Prouvet"
AGENT = CallContext(caller="agent", agent_id="annabelle", user_id="owner", call_id="msg_1:1:0")
PERSON = CallContext(caller="api", user_id="owner")


def tool(*, read_only: bool) -> ToolSpec:
    hints = ToolAnnotations(read_only=read_only)
    return ToolSpec(name="a_b", server="a", original_name="b", description="", input_schema={}, annotations=hints)


@dataclass
class Server:
    result: ToolResult | None = None
    got: list[JsonObject] = field(default_factory=list)

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.got.append(arguments)
        if self.result is None:
            raise ServerDown(f"It ended with {KEY}.", hint=f"Not {KEY}")
        return self.result


@pytest.mark.req("POL-06")
@pytest.mark.incident("I-30")
async def test_an_agents_call_with_a_secret_is_refused_and_a_persons_own_is_made() -> None:
    server = Server(ToolResult(text="done"))
    door = RejectSecrets(server, Redactor([KEY]))
    for arguments, read_only in (({"deep": [{"text": KEY}]}, True), ({"text": MASK}, False)):
        with pytest.raises(NotAllowed) as refused:
            await door.call(tool(read_only=read_only), arguments, AGENT)
        assert KEY not in f"{refused.value.message} {refused.value.hint}"
    assert server.got == []
    await door.call(tool(read_only=False), {"text": KEY}, PERSON)
    await door.call(tool(read_only=True), {"query": MASK}, AGENT)
    assert server.got == [{"text": KEY}, {"query": MASK}]


@pytest.mark.req("POL-06")
@pytest.mark.incident("I-30")
async def test_what_a_server_gives_back_or_fails_with_is_masked() -> None:
    said = ToolResult(text=f"<{KEY}>", display=f"({KEY})", structured={KEY: [f"{KEY}!"]})
    result = await RedactOutput(Server(said), Redactor([KEY])).call(tool(read_only=True), {}, AGENT)
    assert (result.text, result.display) == (f"<{MASK}>", f"({MASK})")
    assert result.structured == {MASK: [f"{MASK}!"]}
    with pytest.raises(ServerDown) as down:
        await RedactOutput(Server(), Redactor([KEY])).call(tool(read_only=True), {}, AGENT)
    assert (down.value.message, down.value.hint, str(down.value)) == (
        f"It ended with {MASK}.", f"Not {MASK}", f"It ended with {MASK}."
    )  # fmt: skip


@pytest.mark.req("TRC-03", "POL-06")
async def test_a_secret_in_a_line_without_end_is_masked_wherever_it_is_cut(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    overheard = StderrCapture(log, Redactor([KEY]))
    for at in range(60):
        os.write(overheard.write_end, b"." * (3_200 + at) + KEY.encode())
        await asyncio.sleep(0)  # the other end reads
    os.write(overheard.write_end, b"\xff the end")
    overheard.close_write_end()
    await overheard.wait_drained(5)
    overheard.close()
    written = log.read_bytes()
    assert KEY.encode() not in written
    assert written.count(MASK.encode()) == 60
    assert written.endswith(b"\xff the end")


@pytest.mark.req("TRC-03", "POL-06")
async def test_what_one_of_our_own_servers_prints_is_masked_for_every_secret_of_the_home(
    with_servers: Callable[..., ToolboxConfig], start: Callable[[ToolboxConfig], Awaitable[Toolbox]]
) -> None:
    config = with_servers("echo")
    toolbox = await start(config)
    not_its_own = config.environment["OTHER_SECRET"]
    await toolbox.call("echo_mutter", {"text": f"{not_its_own}!"}, PERSON)
    await toolbox.stop()
    assert f"muttered {MASK}!" in (config.home.logs / "echo.log").read_text()


@pytest.mark.req("POL-06")
@pytest.mark.parametrize(
    ("arguments", "secrets"),
    [
        (("--token", KEY), {KEY}),
        ((f"--api-key={KEY}",), {KEY}),
        (("run", "-e", f"GITHUB_PAT={KEY}", "image"), {KEY}),
        (("--header", f"Authorization: Bearer {KEY}"), {KEY}),
        ((f"https://me:{KEY}@example.org/mcp",), {KEY}),
        ((f"https://example.org/mcp?token={KEY}&x=1",), {KEY}),
        ((f'{{"password": "{KEY}", "user": "me"}}',), {KEY}),
        (("--key-file", "/home/me/key.pem", "--verbose", "--token", "--port", "8010"), set[str]()),
    ],
)
def test_an_argument_is_a_secret_by_the_name_it_is_given(arguments: tuple[str, ...], secrets: set[str]) -> None:
    known = Redactor(find_argument_secrets(arguments))
    assert not any(secret in known(" ".join(arguments)) for secret in secrets)
    assert secrets or set(find_argument_secrets(arguments)) == set()


@pytest.mark.req("TRC-03", "POL-06")
@pytest.mark.parametrize("part", ["env", "headers"])
async def test_every_value_of_an_entry_is_masked_where_something_is_written_down_whatever_its_name(part: str) -> None:
    way = {"command": "x"} if part == "env" else {"url": "http://127.0.0.1:1/mcp"}
    entry = {**way, part: {"REGION": KEY, "SERVER_URL": "https://hooks.example/T0-9917", "DEBUG": "true"}}
    server = read_entries(json.dumps({"mcpServers": {"a": entry}}), {}, frozenset(), 5).servers["a"]
    redact = Redactor(find_entry_secrets(server))
    redact.learn(entry_values(server), spoken=False)
    assert redact(f"{KEY} at https://hooks.example/T0-9917 is true") == f"{MASK} at {MASK} is true"
    assert redact.redact_data({"region": [KEY]}) == {"region": [MASK]}
    with pytest.raises(ServerDown) as down:
        await RedactOutput(Server(), redact).call(tool(read_only=True), {}, AGENT)
    assert KEY not in f"{down.value.message} {down.value.hint} {down.value}"
    failed = ToolResult(text=f"no {KEY}", is_error=True)
    assert (await RedactOutput(Server(failed), redact).call(tool(read_only=True), {}, AGENT)).text == f"no {MASK}"
    # A folder or an address named in an entry may be what a tool is asked about.
    named = ToolResult(text="ok https://hooks.example/T0-9917")
    assert (
        await RejectSecrets(RedactOutput(Server(named), redact), redact).call(tool(read_only=True), {"q": KEY}, AGENT)
        == named
    )
