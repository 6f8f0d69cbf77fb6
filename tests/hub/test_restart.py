"""Starting again over HTTP, with the settings of now or with a backup (BEY-06)."""

from __future__ import annotations

from collections.abc import Callable

import httpx2 as httpx
import pytest

from annabelle.core.settings_file import SettingsFile
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.network import free_port
from support.scripted_model import Reply, Rule, ScriptedServer

KEY = "gsk_of_nobody_123456789"


@pytest.fixture
def hub(make_hub: Callable[..., HubProcess]) -> HubProcess:
    return make_hub(**only("filer"), ANNABELLE_PORT=str(free_port())).start()


def starting_again(hub: HubProcess, path: str) -> None:
    before = hub.http.get("/health").json()
    answer = hub.http.post(path)
    assert answer.status_code == 202, answer.text

    def started() -> bool:
        try:
            after = hub.http.get("/health").json()
        except httpx.HTTPError:
            return False
        return bool(after["startedAt"] != before["startedAt"] and after["phase"] == "ready")

    wait_for(started, "a hub that started again", 90)


@pytest.mark.req("UX-02", "DUR-01")
def test_a_hub_starts_again_in_its_process_with_the_settings_of_now(hub: HubProcess, model: ScriptedServer) -> None:
    pid = hub.http.get("/status").json()["pid"]
    model.rules(Rule(match="remember", reply=Reply(text="I do.")))
    said = hub.say("Do you remember me?")
    assert hub.http.post("/settings", json={"name": "MAX_CONCURRENT_TURNS", "value": "4"}).json()["restartNeeded"]
    starting_again(hub, "/restart")
    assert hub.http.get("/status").json()["pid"] == pid
    (setting,) = [one for one in hub.http.get("/settings").json()["settings"] if one["name"] == "MAX_CONCURRENT_TURNS"]
    assert (setting["value"], setting["restartNeeded"]) == ("4", False)
    assert hub.say("Do you remember me?")["threadId"] == said["threadId"]
    assert hub.stop() == 0


@pytest.mark.req("UX-02")
def test_a_hub_goes_on_if_its_settings_can_not_be_read(hub: HubProcess) -> None:
    hub.home.settings_file.write_text("MAX_CONCURRENT_TURNS=many\n")
    before = hub.http.get("/health").json()
    refused = hub.http.post("/restart")
    assert (refused.status_code, "MAX_CONCURRENT_TURNS" in refused.text) == (409, True)
    assert hub.http.get("/health").json() == before


@pytest.mark.req("BEY-06", "UX-02")
def test_a_backup_is_restored_and_what_opens_the_home_stays(hub: HubProcess, model: ScriptedServer) -> None:
    (hub.home.workspace / "plan.txt").write_text("the first")
    kept = hub.say("Before the backup")["threadId"]
    name = hub.http.post("/backups").json()["name"]
    (hub.home.workspace / "plan.txt").write_text("the second")
    later = hub.say("After the backup", chatId="later")["threadId"]
    assert hub.http.post("/settings", json={"name": "GROQ_API_KEY", "value": KEY}).status_code == 200
    token = hub.http.post("/tokens", json={"name": "phone", "kind": "device"}).json()["secret"]

    starting_again(hub, f"/backups/{name}/restore")
    threads = [one["id"] for one in hub.http.get("/threads").json()["threads"]]
    assert (kept in threads, later in threads) == (True, False)
    assert (hub.home.workspace / "plan.txt").read_text() == "the first"
    assert SettingsFile(hub.home.settings_file).values()["GROQ_API_KEY"] == KEY
    assert hub.http.get("/threads", headers={"X-Annabelle-Token": token}).status_code == 200
    assert hub.http.get("/audit/verify").json()["intact"] is True
    (told,) = [one["text"] for one in hub.http.get("/status").json()["notices"] if one["topic"] == "restore"]
    assert told.startswith(f"The backup {name} was restored. What was there before is kept in ")
    (aside,) = hub.home.backups.glob("replaced-*")
    assert (aside / "workspace" / "plan.txt").read_text() == "the second"
    assert name in [one["name"] for one in hub.http.get("/backups").json()["backups"]]
    starting_again(hub, "/restart")  # it is restored once
    assert len(list(hub.home.backups.glob("replaced-*"))) == 1


@pytest.mark.req("BEY-06")
def test_a_damaged_backup_is_refused_and_one_that_fails_later_leaves_everything(hub: HubProcess) -> None:
    name = hub.http.post("/backups").json()["name"]
    file, whole = hub.home.backups / name, (hub.home.backups / name).read_bytes()
    before = hub.http.get("/health").json()
    file.write_bytes(whole[: len(whole) // 2])
    assert hub.http.post(f"/backups/{name}/restore").status_code == 400
    assert hub.http.post("/backups/nothing.zip/restore").status_code == 404
    assert hub.http.get("/health").json() == before

    # What only unpacking finds: the content of an entry is not what its hash says.
    place = whole.index(b"PK\x03\x04") + 200
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    said = hub.say("Still here?")["threadId"]
    starting_again(hub, f"/backups/{name}/restore")
    (told,) = [one["text"] for one in hub.http.get("/status").json()["notices"] if one["topic"] == "restore"]
    assert told.startswith(f"The backup {name} was not restored. ")
    assert said in [one["id"] for one in hub.http.get("/threads").json()["threads"]]
