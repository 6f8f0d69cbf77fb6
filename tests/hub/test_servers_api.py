"""The servers over HTTP: what each lacks, and a restart that makes a changed account count at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest
from pydantic import SecretStr

from annabelle.core.connections import TelegramAccount, write_connection
from annabelle.hub.security.users_file import add_user, remove_user
from hub.hubs import HubProcess
from support.few_servers import only

ACCOUNT = TelegramAccount(api_id=1, api_hash=SecretStr("h"), session=SecretStr("s"))


def server(hub: HubProcess, name: str) -> dict[str, object]:
    return next(one for one in hub.http.get("/servers").json()["servers"] if one["name"] == name)


@pytest.mark.req("SRV-TEL", "SRV-ALL")
def test_a_restart_makes_a_newly_connected_account_count_at_once(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(**only("filer", "telegram")).start()
    before = server(hub, "telegram")
    assert (before["state"], str(before["missing"])[-31:]) == ("ready", "Run: annabelle connect telegram")
    call = {"name": "telegram_get_me", "arguments": {}}
    refused = hub.http.post("/tools/call", json=call).json()
    assert refused["is_error"]
    assert "annabelle connect telegram" in refused["text"]
    write_connection(hub.home, "telegram", ACCOUNT)
    answer = hub.http.post("/servers/telegram/restart")
    assert (answer.status_code, answer.json()["state"], answer.json()["missing"]) == (200, "ready", None)
    after = server(hub, "telegram")
    assert after["pid"] != before["pid"]
    status = {one["name"]: one for one in hub.http.get("/status").json()["servers"]}
    assert status["telegram"]["missing"] is None

    with ThreadPoolExecutor(4) as pool:
        codes = [one.status_code for one in pool.map(lambda _: hub.http.post("/servers/telegram/restart"), range(4))]
    assert codes == [200] * 4
    last = server(hub, "telegram")
    kept = [child for child in hub.children() if child.status() != psutil.STATUS_ZOMBIE and _serves(child, "telegram")]
    assert [child.pid for child in kept] == [last["pid"]], "restarts at once leave one process"


def _serves(process: psutil.Process, name: str) -> bool:
    try:
        return any(name in word for word in (process.name(), *process.cmdline()))
    except psutil.Error:
        return False


def test_only_the_owner_sees_and_restarts_servers_and_only_those_there_are(shared_hub: HubProcess) -> None:
    assert {one["name"] for one in shared_hub.http.get("/servers").json()["servers"]} >= {"filer", "memory"}
    for name, status in (("nothing", 404), ("a b", 422), ("..%2f", 404), ("x" * 101, 422)):
        assert shared_hub.http.post(f"/servers/{name}/restart").status_code == status, name
    token = add_user(shared_hub.home.users_file, "ada")
    with httpx.Client(base_url=shared_hub.url, headers={"X-Annabelle-Token": token}) as ada:
        assert ada.get("/servers").status_code == 403
        assert ada.post("/servers/filer/restart").status_code == 403
    remove_user(shared_hub.home.users_file, "ada")
    assert httpx.post(f"{shared_hub.url}/servers/filer/restart").status_code == 401
