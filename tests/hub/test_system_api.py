"""Looking after the install over HTTP: what is wrong, settings, models, accounts, backups and logs (UX-02)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from annabelle.hub.security.users_file import add_user, remove_user
from hub.hubs import HubProcess, fresh_home
from support.few_servers import only
from support.scripted_model import ScriptedServer


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    started = HubProcess(fresh_home(tmp_path_factory.mktemp("system")), model.openai_url, **only("filer")).start()
    yield started
    started.end()


@pytest.mark.req("DIA-04", "UX-02")
def test_the_diagnosis_looks_at_the_home_too_and_fixes_what_is_safe(hub: HubProcess) -> None:
    hub.home.settings_file.write_text("# nothing yet\n")
    hub.home.settings_file.chmod(0o644)

    def exposed() -> list[str]:
        findings = hub.http.get("/diagnosis", params={"installation": True}).json()["findings"]
        return [one["subject"] for one in findings if one["check"] == "secret-files" and one["severity"] != "ok"]

    assert not [one for one in hub.http.get("/diagnosis").json()["findings"] if one["category"] == "installation"]
    assert exposed() == ["settings.env"]
    steps = hub.http.post("/diagnosis/fix").json()["steps"]
    assert {"done": True, "text": "Only you may read settings.env now."} in steps
    assert [one["text"] for one in steps if not one["done"]] == [
        "Logs, state files and databases were left, because Annabelle runs. Stop it first: annabelle down"
    ]
    assert exposed() == []


@pytest.mark.req("UX-02")
def test_only_the_owner_looks_after_the_install(hub: HubProcess) -> None:
    token = add_user(hub.home.users_file, "ada")
    with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": token}) as ada:
        for path in ("/diagnosis",):
            assert ada.get(path).status_code == 403, path
        for path in ("/diagnosis/fix",):
            assert ada.post(path, json={}).status_code == 403, path
    remove_user(hub.home.users_file, "ada")
