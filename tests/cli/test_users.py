"""`annabelle users`: who beside the owner may talk to Annabelle."""

from __future__ import annotations

import hashlib
import json

import pytest

from annabelle.core.home import Home
from cli.terminal import run


@pytest.mark.incident("I-30")
def test_a_person_gets_a_token_once_and_only_its_hash_is_kept(known: dict[str, str], home: Home):
    added = run(known, "users", "add", "ada")
    token = added.stdout.strip()
    assert len(token) >= 32
    assert "kept nowhere" in added.stderr
    kept = home.users_file.read_text()
    assert token not in kept
    assert json.loads(kept)["users"][0]["tokenSha256"] == hashlib.sha256(token.encode()).hexdigest()
    assert home.users_file.stat().st_mode & 0o777 == 0o600
    listed = run(known, "users", "list", "--json").stdout
    assert [user["id"] for user in json.loads(listed)["users"]] == ["ada"]
    assert "tokenSha256" not in listed
    assert run(known, "users", "rm", "ada").returncode == 0
    assert "Nobody but the owner" in run(known, "users").stdout


@pytest.mark.req("CMD-03")
def test_a_person_becomes_an_admin_and_is_one_no_longer(known: dict[str, str]):
    run(known, "users", "add", "ada")
    for arguments, is_admin in ((("admin", "ada"), True), (("admin", "ada", "--revoke"), False)):
        assert run(known, "users", *arguments).returncode == 0
        (ada,) = json.loads(run(known, "users", "list", "--json").stdout)["users"]
        assert (ada["id"], ada["admin"]) == ("ada", is_admin)
    assert "There is no user grace" in run(known, "users", "admin", "grace").stderr


@pytest.mark.incident("I-30")
def test_a_name_that_is_taken_reserved_or_no_name_is_refused(known: dict[str, str], home: Home):
    assert run(known, "users", "add", "ada").returncode == 0
    before = home.users_file.read_text()
    for arguments in (("add", "ada"), ("add", "owner"), ("add", "Ada Lovelace"), ("rm", "grace")):
        refused = run(known, "users", *arguments)
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
        assert refused.stderr.strip()
    assert home.users_file.read_text() == before
