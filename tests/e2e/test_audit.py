"""The audit of a running hub: everything that happens gets in, and the terminal checks it meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from annabelle.store.audit.records import AuditPaths
from cli.terminal import ANNABELLE, environment
from e2e.days import plan
from hub.hubs import HubProcess, wait_for
from support.timing import seconds


def records(hub: HubProcess, **wanted: str | int) -> list[dict[str, object]]:
    return hub.http.get("/audit", params={"last": 1000, **wanted}).json()["records"]


def audit(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ANNABELLE, "audit", *words], env=environment(home), capture_output=True, text=True, timeout=seconds(60)
    )


@pytest.mark.req("TRU-08", "GRD-08", "TRU-09")
def test_calls_logins_servers_and_configs_are_in_the_audit_and_their_content_is_not(house: HubProcess) -> None:
    secret = "the-word-nobody-may-read-in-the-audit"
    written = {"path": "audited.txt", "content": secret}
    answer = house.say(plan("done", ("filer_create_file", written)), chatId="audited")
    assert answer["state"] == "done"
    refused = httpx.get(f"{house.url}/status", headers={"X-Annabelle-Token": "not-the-token"})
    assert refused.status_code == 401

    def call() -> dict[str, object] | None:
        found = [one["facts"] for one in records(house, kind="tool")]
        return next((one for one in found if one["tool"] == "filer_create_file"), None)  # type: ignore[index, call-overload]

    facts = wait_for(call, "the call to be noted")
    assert (facts["server"], facts["caller"], facts["user_id"], facts["outcome"]) == ("filer", "agent", "owner", "ok")
    assert len(str(facts["arguments_hash"])) == 16
    events = {(one["kind"], one["facts"]["event"]) for one in records(house) if "event" in one["facts"]}  # type: ignore[index, operator]
    assert {("server", "start"), ("server", "ready"), ("config", "in_force")} <= events
    assert {("login", "accepted"), ("login", "refused"), ("login", "admitted")} <= events
    files = AuditPaths.from_home(house.home).files()
    assert not any(secret.encode() in path.read_bytes() for path in files)
    assert not any(house.token.encode() in path.read_bytes() for path in files)


@pytest.mark.req("TRU-08")
def test_the_audit_is_verified_while_the_hub_runs_and_an_edited_copy_is_found(
    house: HubProcess, tmp_path: Path
) -> None:
    good = audit(house.home, "verify", "--json")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["good"] is True
    copy = Home(tmp_path / "copy").prepare()
    for path in (house.home.audit_key_file, house.home.audit_head_file, *AuditPaths.from_home(house.home).files()):
        shutil.copy(path, copy.root / path.relative_to(house.home.root))
    lines = copy.audit_file.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"config", b"conf1g")
    copy.audit_file.write_bytes(b"".join(lines))
    bad = audit(copy, "verify")
    assert bad.returncode == 3
    assert bad.stderr.startswith("audit.jsonl, line 2: record 2 was altered.")
