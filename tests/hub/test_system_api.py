"""Looking after the install over HTTP: what is wrong, settings, models, accounts, backups and logs (UX-02)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest

from annabelle.hub.security.users_file import add_user, remove_user
from annabelle.store.home_archive import open_archive
from cli.sign_ins import mail_sign_ins
from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.scripted_model import ScriptedServer
from support.scripted_model.file_server import FileServer
from support.timing import seconds

ADDRESS, PASSWORD = "ada@example.org", "a password nobody may see"
CONTENT = bytes(range(256)) * 4000
READ = (
    *("/diagnosis", "/settings", "/models", "/audit/verify", "/logs", "/logs/hub", "/sessions/tokens"),
    *(
        "/backups",
        "/backups/x",
        "/accounts",
        "/costs",
        "/costs/budget",
        "/status",
        "/agents",
        "/audit",
        "/files?path=x",
    ),
)
CHANGED = (
    *("/diagnosis/fix", "/settings", "/models/use", "/models/pull", "/sessions/tokens/x/revoke"),
    *("/backups", "/backups/x/delete", "/backups/x/restore", "/restart", "/accounts/mail", "/accounts/mail/remove"),
    *("/accounts/google", "/accounts/google/wait", "/accounts/google/remove"),
)


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


def setting(hub: HubProcess, name: str, http: httpx.Client | None = None) -> dict[str, object]:
    found = (http or hub.http).get("/settings").json()["settings"]
    return next(one for one in found if one["name"] == name)


@pytest.mark.req("UX-02")
def test_a_setting_is_changed_checked_and_put_back(hub: HubProcess) -> None:
    before = setting(hub, "MAX_CONCURRENT_TURNS")
    assert (before["value"], before["default"], before["origin"], before["kind"]) == ("8", "8", "default", "number")
    changed = hub.http.post("/settings", json={"name": "max_concurrent_turns", "value": "4"}).json()
    assert (changed["value"], changed["origin"], changed["isSet"], changed["restartNeeded"]) == (
        "4",
        "home",
        True,
        True,
    )
    refused = hub.http.post("/settings", json={"name": "MAX_CONCURRENT_TURNS", "value": "0"})
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith("MAX_CONCURRENT_TURNS is not valid: Input should be greater")
    assert setting(hub, "MAX_CONCURRENT_TURNS")["value"] == "4"
    assert hub.http.post("/settings", json={"name": "MAX_CONCURRENT_TURNS", "value": None}).json() == before
    assert hub.http.post("/settings", json={"name": "MAX_TURNS", "value": "1"}).status_code == 404
    assert setting(hub, "LOG_LEVEL")["choices"] == ["debug", "info", "warning", "error"]
    assert setting(hub, "GUARDIAN_ENABLED")["kind"] == "switch"
    assert setting(hub, "THINKER_LLM_PROVIDER")["origin"] == "environment"
    changes = hub.http.get("/audit", params={"kind": "config"}).json()["records"]
    assert changes[-1]["facts"]["setting"] == "MAX_CONCURRENT_TURNS"


@pytest.mark.req("UX-02", "POL-06")
def test_a_secret_is_set_and_never_sent(hub: HubProcess) -> None:
    secret, address = "gsk_of_nobody_123456789", "http://me:hunter2hunter2@search.example"
    assert hub.http.post("/settings", json={"name": "GROQ_API_KEY", "value": secret}).json()["value"] is None
    assert hub.http.post("/settings", json={"name": "SEARXNG_URL", "value": address}).json()["kind"] == "secret"
    assert setting(hub, "GROQ_API_KEY")["isSet"]
    answer = hub.http.get("/settings").text
    assert secret not in answer
    assert "hunter2" not in answer
    assert secret in hub.home.settings_file.read_text()
    assert secret not in hub.log()
    for name in ("GROQ_API_KEY", "SEARXNG_URL"):
        assert not hub.http.post("/settings", json={"name": name, "value": ""}).json()["isSet"]


@pytest.mark.req("UX-02", "I-03")
def test_a_device_cannot_set_what_would_make_it_the_owner(hub: HubProcess) -> None:
    made = hub.http.post("/tokens", json={"name": "phone", "kind": "device"}).json()
    with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": made["secret"]}) as phone:
        for name in ("ANNABELLE_TOKEN", "EXTRA_SERVERS_PATH", "OP_PATH", "CODEXEC_CONTAINER_ENGINE"):
            assert setting(hub, name, phone)["terminalOnly"]
            assert phone.post("/settings", json={"name": name, "value": "x" * 20}).status_code == 403, name
        assert phone.post("/settings", json={"name": "USER_NAME", "value": "Ada"}).status_code == 200
    assert not setting(hub, "OP_PATH")["terminalOnly"]
    hub.http.post("/tokens/phone/revoke")


@pytest.mark.req("UX-02")
def test_a_wrong_value_in_the_file_is_shown_with_its_sentence_and_can_be_mended(hub: HubProcess) -> None:
    hub.home.settings_file.write_text("BACKUP_KEEP=many\n")
    assert "BACKUP_KEEP is not valid" in str(setting(hub, "BACKUP_KEEP")["problem"])
    assert hub.http.post("/settings", json={"name": "BACKUP_KEEP", "value": "5"}).json()["problem"] is None


@pytest.mark.req("UX-02", "LLM-02")
def test_models_say_what_they_are_used_for_and_one_is_tested_and_chosen(hub: HubProcess) -> None:
    found = hub.http.get("/models").json()
    assert found["answering"].startswith("scripted at the OpenAI-compatible server answers")
    assert (found["works"], found["afterRestart"]) == (True, None)
    uses = {one["purpose"]: one["model"] for one in found["uses"]}
    assert uses["answers of annabelle"] == "compatible:scripted"
    assert uses["reading your orders"] == "none: rules alone decide"
    options = {one["name"]: one for one in found["options"]}
    assert options["groq:llama-3.3-70b-versatile"]["setting"] == "GROQ_API_KEY"
    assert options["smollm2-135m"]["state"] == "ready"

    tested = hub.http.post("/models/test", json={"name": "groq"}).json()
    assert (tested["works"], "GROQ_API_KEY is not set" in tested["text"]) == (False, True)
    assert hub.http.post("/models/test", json={"name": "smollm2-135m"}).json()["works"]
    assert hub.http.post("/models/test", json={"name": "nothing"}).status_code == 404
    chosen = hub.http.post("/models/use", json={"name": "ollama:qwen3"}).json()
    assert chosen["overridden"] == ["THINKER_LLM_PROVIDER"], "the tests set it"
    assert hub.home.settings_file.read_text().endswith("THINKER_LLM_PROVIDER=ollama\nOLLAMA_MODEL=qwen3\n")
    assert hub.http.post("/models/use", json={"name": "ollama", "key": "k"}).status_code == 400
    before = hub.home.settings_file.read_text()
    assert hub.http.post("/models/use", json={"name": "openai:gpt\n"}).status_code == 422
    assert hub.home.settings_file.read_text() == before, "what is refused leaves no half behind"
    assert hub.http.post("/models/use", json={"name": "auto"}).status_code == 200
    assert "THINKER_LLM_PROVIDER" not in hub.home.settings_file.read_text()


@pytest.mark.req("UX-02", "LLM-03")
def test_a_model_is_fetched_in_the_background_checked_and_goes_on_after_a_break(hub: HubProcess) -> None:
    def state() -> dict[str, object]:
        return next(one for one in hub.http.get("/models").json()["downloads"] if one["name"] == "tiny")

    with FileServer(CONTENT) as files:
        wanted = {"name": "tiny", "url": files.url, "sha256": hashlib.sha256(CONTENT).hexdigest()}
        files.break_after = 300_000
        assert hub.http.post("/models/pull", json=wanted).status_code == 202
        wait_for(lambda: state()["state"] == "failed", "a broken download")
        assert "goes on where it stopped" in str(state()["problem"])
        files.break_after = None
        hub.http.post("/models/pull", json={"name": "tiny"})
        wait_for(lambda: state()["state"] == "done", "the whole model")
        assert files.ranges[-1].startswith("bytes=")
        assert (state()["done"], (hub.home.models / "tiny.gguf").read_bytes()) == (len(CONTENT), CONTENT)
    assert hub.http.post("/models/pull", json={"name": "unknown"}).status_code == 404
    assert hub.http.post("/models/pull", json={"name": "A B", "url": "ftp://x"}).status_code == 422
    assert hub.http.post("/models/pull/cancel", json={"name": "tiny"}).status_code == 404


@pytest.mark.req("UX-02", "TRU-07")
def test_the_audit_is_checked_and_what_is_about_safety_is_found(hub: HubProcess) -> None:
    found = hub.http.get("/audit/verify").json()
    assert (found["intact"], found["text"].startswith("The audit is whole: ")) == (True, True)
    hub.http.post("/stop", json={})
    hub.http.post("/resume", json={})
    kinds = [one["kind"] for one in hub.http.get("/audit", params={"safety": True, "last": 5}).json()["records"]]
    assert (kinds[-2:], len(kinds)) == (["stop", "stop"], 5)
    assert not {"tool", "server", "message"} & set(kinds)


@pytest.mark.req("UX-02")
@pytest.mark.incident("I-03")
def test_a_session_of_the_page_takes_back_tokens_that_may_do_no_more_than_itself(hub: HubProcess) -> None:
    for name, kind in (("tablet", "device"), ("laptop", "person")):
        hub.http.post("/tokens", json={"name": name, "kind": kind})
    code = hub.http.post("/sessions/links").json()["path"].partition("=")[2]
    with httpx.Client(base_url=hub.url) as browser:
        browser.headers["X-Annabelle-Page"] = browser.post("/sessions", json={"code": code}).json()["key"]
        listed = browser.get("/sessions/tokens").json()["tokens"]
        assert {"main", "tablet", "laptop"} <= {one["name"] for one in listed}
        assert browser.post("/sessions/tokens/tablet/revoke").status_code == 200
        refused = browser.post("/sessions/tokens/laptop/revoke")
        assert (refused.status_code, refused.json()["error"]["hint"][-30:]) == (403, "annabelle tokens revoke laptop")
        assert browser.post("/sessions/tokens/main/revoke").status_code == 403
        assert browser.post("/sessions/tokens/nothing/revoke").status_code == 404
        assert browser.get("/tokens").status_code == 403
    assert "tablet" not in hub.home.users_file.read_text()
    assert hub.http.get("/sessions/tokens").status_code == 403, "others use /tokens"


@pytest.mark.req("UX-02")
def test_a_log_is_read_filtered_and_followed_with_its_secrets_masked(hub: HubProcess) -> None:
    names = {one["name"] for one in hub.http.get("/logs").json()["logs"]}
    assert {"hub", "filer"} <= names
    found = hub.http.get("/logs/hub", params={"lines": 1000}).json()
    assert any("The hub is ready" in line for line in found["lines"])
    ready = hub.http.get("/logs/hub", params={"words": "THE HUB IS READY"}).json()["lines"]
    assert len(ready) == 1
    with (hub.home.logs / "hub.log").open("a") as log:
        log.write(f"one more line with {hub.token}\n")
    more = hub.http.get("/logs/hub", params={"position": found["position"]}).json()
    assert more["lines"][-1].startswith("one more line with ")
    assert hub.token not in str(more)
    again = hub.http.get("/logs/hub", params={"position": more["position"], "words": "one more line"}).json()
    assert again["lines"] == []
    for name in ("nothing", "..%2fannabelle", "audit"):
        assert hub.http.get(f"/logs/{name}").status_code == 404, name


@pytest.mark.req("UX-02", "BEY-06")
def test_a_backup_is_made_downloaded_without_secrets_and_deleted(hub: HubProcess, tmp_path: Path) -> None:
    made = hub.http.post("/backups").json()
    assert made["name"].startswith("manual-")
    listed = hub.http.get("/backups").json()["backups"]
    assert (listed[0]["name"], listed[0]["size"], listed[0]["path"]) == (made["name"], made["size"], made["path"])
    file = tmp_path / "fetched.zip"
    file.write_bytes(hub.http.get(f"/backups/{made['name']}").content)
    with open_archive(file, secrets=False) as archive:
        paths = {entry.path for entry in archive.manifest.entries}
    assert "home/data/annabelle.db" in paths
    assert "home/annabelle.token" not in paths
    assert hub.token.encode() not in file.read_bytes()
    for name in ("nothing.zip", "..%2fannabelle.token", "%2e%2e"):
        assert hub.http.get(f"/backups/{name}").status_code == 404, name
    assert hub.http.post(f"/backups/{made['name']}/delete").status_code == 204
    assert hub.http.get("/backups").json()["backups"] == []


@pytest.mark.req("UX-02", "SRV-MAI")
def test_a_mailbox_is_tried_before_it_is_kept_and_its_password_is_never_told(hub: HubProcess) -> None:
    with mail_sign_ins(ADDRESS, PASSWORD) as servers:
        wanted = {"address": ADDRESS, "password": PASSWORD, "security": "none", **servers}
        refused = hub.http.post("/accounts/mail", json={**wanted, "password": "wrong password"})
        assert (refused.status_code, "refused the user name or the password" in refused.text) == (400, True)
        for wrong in ({"address": "ada"}, {"imap": "10.0.0.5:143"}, {"smtp": "a b"}):
            assert hub.http.post("/accounts/mail", json={**wanted, **wrong}).status_code == 400, wrong
        states = {one["kind"]: one["state"] for one in hub.http.get("/accounts").json()["accounts"]}
        assert states == dict.fromkeys(("google", "mail", "telegram"), "missing")
        made = hub.http.post("/accounts/mail", json=wanted).json()
        assert made == {"account": ADDRESS, "calendar": False, "withoutCalendar": None}
    listed = hub.http.get("/accounts")
    assert {"kind": "mail", "account": ADDRESS, "state": "connected", "command": "annabelle connect mail"} in (
        listed.json()["accounts"]
    )
    assert PASSWORD not in listed.text + hub.log() + hub.http.get("/audit").text
    assert hub.http.post("/accounts/mail/remove").status_code == 204
    assert hub.http.post("/accounts/mail/remove").status_code == 404


@pytest.mark.req("UX-02", "SRV-MAI")
def test_a_sign_in_at_google_needs_a_client_and_a_new_one_ends_the_one_before(hub: HubProcess) -> None:
    assert hub.http.post("/accounts/google/wait").status_code == 404
    refused = hub.http.post("/accounts/google", json={})
    assert (refused.status_code, "console.cloud.google.com" in refused.text) == (409, True)
    client = {"clientId": "client-1", "clientSecret": "a secret nobody may see"}
    with ThreadPoolExecutor() as pool:
        first = hub.http.post("/accounts/google", json=client).json()["url"]
        waiting = pool.submit(hub.http.post, "/accounts/google/wait")
        redirect = parse_qs(urlsplit(first).query)["redirect_uri"][0]
        assert httpx.get(redirect).status_code == 400  # it answers nothing but this sign-in
        second = hub.http.post("/accounts/google", json=client).json()["url"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(redirect)
        asked = {name: values[0] for name, values in parse_qs(urlsplit(second).query).items()}
        httpx.get(asked["redirect_uri"], params={"state": asked["state"], "error": "access_denied"})
        # Whether it came before the second one began is not known.
        assert waiting.result(seconds(30)).json()["error"]["message"] in (
            "Another sign-in was begun.",
            "Access was not allowed at Google.",
        )
    assert "a secret nobody may see" not in second + hub.log()


@pytest.mark.req("UX-02")
def test_only_the_owner_looks_after_the_install(hub: HubProcess) -> None:
    token = add_user(hub.home.users_file, "ada")
    with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": token}) as ada:
        for path in READ:
            assert ada.get(path).status_code == 403, path
        for path in CHANGED:
            assert ada.post(path, json={}).status_code == 403, path
    remove_user(hub.home.users_file, "ada")
