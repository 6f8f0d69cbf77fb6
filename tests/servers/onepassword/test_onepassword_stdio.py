"""The 1Password server as a real process, spoken to with the official client."""

import os

import pytest

from servers.speaking import Connect
from support.op_stand_in import PASSWORD, StandIn


@pytest.mark.req("SRV-OPW", "SRV-ALL", "POL-06")
async def test_a_secret_is_read_over_stdio_and_only_the_hub_learns_its_value(as_process: Connect, op: StandIn):
    path = f"{op.folder}:{os.environ['PATH']}"
    async with as_process("-m", "annabelle.servers.onepassword", PATH=path) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"list_vaults", "list_items", "get_item", "read_secret", "reveal", "readiness"}
        meta = {"annabelle": {"agent_id": "annabelle", "user_id": "owner"}}
        got = await client.call_tool("read_secret", {"reference": "op://Private/Bank/password"}, meta=meta)
        assert PASSWORD not in got.model_dump_json()
        handle = got.structured_content["handle"]
        refused = await client.call_tool("reveal", {"handle": handle}, meta=meta)
        assert refused.is_error
        assert PASSWORD not in refused.model_dump_json()
        meta["annabelle"]["caller"] = "hub"
        shown = await client.call_tool("reveal", {"handle": handle}, meta=meta)
        assert shown.structured_content == {"value": PASSWORD, "sites": ["https://bank.example/login"]}
