"""`annabelle memory`: what is known is found, listed, explained and corrected in words a person understands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from annabelle.cli.memory import client
from annabelle.core.home import Home
from cli.terminal import json_only, wait_until
from cli.typed import Keyboard, Typed

EVERY_COMMAND = (
    "search", "list", "show", "why", "add", "edit", "rm", "bring-back", "timeline", "stats", "export", "import",
    "tidy", "undo", "changes", "learn", "embed", "backups", "restore", "profile",
)  # fmt: skip
TOOLS = re.compile(r"\b(?:memory_\w+|(?:list|store|update|delete|explain|restore)_fact\w*|retrieve_memories|fact_id)\b")


def added(keyboard: Keyboard, fact: str, *options: str) -> str:
    """The number of a new fact."""
    return str(keyboard("memory", "add", fact, *options, "--json").json["fact_id"])


def wrong(done: Typed, *words: str) -> None:
    """A command that was refused: one or two sentences on stderr, nothing else."""
    assert (done.code, done.out) == (2, ""), done
    assert "Traceback" not in done.err
    assert not TOOLS.search(done.err), done.err
    for word in words:
        assert word in done.err


@pytest.mark.req("MEM-02", "MEM-06", "MEM-09", "UX-01")
def test_a_fact_is_added_listed_shown_and_explained(keyboard: Keyboard):
    fact = added(keyboard, "Keeps  bees 🐝 on the roof\x07", "-c", "pattern", "--since", "2024-05-01")
    listed = keyboard.said("memory", "list", "-c", "pattern").splitlines()
    assert listed[0].split() == ["FACT", "CATEGORY", "SINCE", "STATE", "WHAT"]
    assert f"{fact:<6}pattern   2024-05-01  current  Keeps bees 🐝 on the roof" in listed
    shown = dict(line.split(maxsplit=1) for line in keyboard.said("memory", "show", fact).splitlines())
    assert (shown["text"], shown["trust"], shown["confidence"]) == ("Keeps bees 🐝 on the roof", "trusted", "1")
    told = keyboard.said("memory", "why", fact)
    assert "told by a person at the terminal (source: added in the terminal; confidence 1; trusted)" in told
    assert "It holds from 2024-05-01." in told
    whole = keyboard("memory", "show", fact, "--json").json
    assert (whole["fact"], whole["origin"]["kind"]) == ("Keeps bees 🐝 on the roof", "cli")


@pytest.mark.req("MEM-09", "MEM-02")
def test_a_correction_keeps_the_old_words_as_history_and_can_be_taken_back(keyboard: Keyboard):
    old = added(keyboard, "Lives in Berlin")
    said = keyboard.said("memory", "add", "Lives in Lisbon")
    assert f"It took the place of {old} " in said
    new = said.split()[1]
    states = {row[0]: row[3] for row in map(str.split, keyboard.said("memory", "list", "--all").splitlines())}
    assert (states[old], states[new]) == ("superseded", "current")
    assert old not in [line.split()[0] for line in keyboard.said("memory", "list").splitlines()]
    assert f"Before: {old} [background, superseded by {new}] Lives in Berlin" in keyboard.said("memory", "why", new)
    assert f"History now: {new} " in keyboard.said("memory", "bring-back", old)
    corrected = keyboard.said("memory", "edit", old, "Lives in Porto").split()[1]
    wrong(keyboard("memory", "edit", old, "Lives in Faro"), "is history already", "annabelle memory why")
    assert f"bring-back {corrected}" in keyboard.said("memory", "rm", corrected)
    assert "history already" in keyboard.said("memory", "rm", corrected)


@pytest.mark.req("MEM-02")
def test_the_editor_opens_when_no_words_are_given_and_a_category_alone_keeps_them(
    keyboard: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fact = added(keyboard, "Plays the viola", "-c", "preference")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/viola/cello/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    changed = keyboard("memory", "edit", fact, "--json").json
    assert (changed["fact"]["fact"], changed["superseded"][0]["id"]) == ("Plays the cello", int(fact))
    moved = keyboard("memory", "edit", str(changed["fact_id"]), "-c", "pattern", "--json").json
    assert (moved["fact"]["fact"], moved["fact"]["category"]) == ("Plays the cello", "pattern")
    editor.write_text('#!/bin/sh\n: > "$1"\n')
    wrong(keyboard("memory", "edit", str(moved["fact_id"])), "The fact is empty. Nothing was changed.")


@pytest.mark.req("MEM-03", "UX-01")
def test_search_shows_where_each_hit_comes_from_and_how_what_is_shown_was_found(keyboard: Keyboard):
    fact = added(keyboard, "Collects wooden sailing ships", "-c", "preference")
    found = keyboard.said("memory", "search", "sailing ships")
    assert re.search(rf"^{fact} +[01]\.\d\d +\d{{4}}-\d\d-\d\d +added in the terminal +Collects wooden", found, re.M)
    # There is no conversation, so the words for how one was found are not said.
    assert found.splitlines()[-1] == "Found by meaning and words."
    assert keyboard.said("memory", "search", "zzyzx", "-c", "decision") == "Nothing is known about it.\n"
    rows = keyboard("memory", "search", 'ships" OR 1=1; --', "--facts", "-n", "1", "--json").json
    assert [row["id"] for row in rows["facts"]] == [int(fact)]
    assert (rows["facts_tier"], rows["conversations_tier"]) == ("hybrid", None)
    assert rows["facts"][0]["parts"]["text"] > 0


@pytest.mark.req("MEM-02")
def test_a_long_list_and_a_long_timeline_are_read_page_by_page(keyboard: Keyboard):
    facts = [added(keyboard, f"Decided on plan {name}", "-c", "decision") for name in ("alder", "birch", "cedar")]
    page = keyboard.said("memory", "list", "-c", "decision", "-n", "2").splitlines()
    assert [line.split()[0] for line in page[1:3]] == facts[:0:-1]
    assert page[3] == f"There are more: the same with --before {facts[1]}"
    rest = keyboard.said("memory", "list", "-c", "decision", "-n", "2", "--before", facts[1]).splitlines()
    assert [line.split()[0] for line in rest[1:]] == facts[:1]
    first = keyboard.said("memory", "timeline", "--about", "on plan", "-n", "2").splitlines()
    assert [line.split()[-1] for line in first[1:3]] == ["alder", "birch"]
    assert first[1].split()[2:4] == ["fact", "learnt"]
    cursor = first[3].rpartition(" ")[2]
    again = keyboard.said("memory", "timeline", "--about", "on plan", "--cursor", cursor).splitlines()
    assert [line.split()[-1] for line in again[1:]] == ["cedar"]


@pytest.mark.req("UX-01", "MEM-02")
def test_every_command_gives_a_machine_one_document_and_tells_it_errors_as_json(keyboard: Keyboard):
    fact = added(keyboard, "Owns a red bicycle")
    for arguments in (
        (), ("search", "bicycle"), ("list",), ("show", fact), ("why", fact), ("timeline",), ("stats",), ("changes",),
        ("backups",), ("profile",), ("profile", "history"), ("embed",), ("learn",), ("tidy",), ("rm", fact),
        ("bring-back", fact),
    ):  # fmt: skip
        keyboard("memory", *arguments, "--json").json  # noqa: B018  it looks at itself
    for arguments in (("show", "999"), ("restore",), ("undo", "99"), ("list", "-c", "what"), ("import", "/nowhere")):
        refused = keyboard("memory", *arguments, "--json")
        assert (refused.code, refused.out) == (2, "")
        assert set(json_only(refused.err)["error"]) >= {"code", "message"}


@pytest.mark.req("UX-01", "MEM-05")
def test_bad_input_is_refused_in_one_sentence_with_what_to_type_instead(keyboard: Keyboard, tmp_path: Path):
    before = keyboard("memory", "stats", "--json").json["current_facts"]
    for number in ("show", "why", "rm", "bring-back"):
        wrong(keyboard("memory", number, "999"), "There is no fact 999.", "annabelle memory list")
        wrong(keyboard("memory", number, "0"))
        wrong(keyboard("memory", number, "one"))
        wrong(keyboard("memory", number, "9" * 20))
    wrong(keyboard("memory", "add", "x y", "-c", "gossip"), "'gossip' is not one of", "decision")
    for nothing in ("", "  \n", "🐝🐝", "\x00\x1b"):
        wrong(keyboard("memory", "add", nothing), "The fact has no words in it.")
    wrong(keyboard("memory", "add", "long " * 200_000), "1,000,000 characters")
    wrong(keyboard("memory", "add", "My password is hunter2!x"), "password", "keeps no secrets")
    wrong(keyboard("memory", "add", "Likes rain", "--since", "2024-02-30"), "--since is not a date")
    wrong(keyboard("memory", "add", "Likes rain", "--replaces", "999"), "There is no fact 999.")
    wrong(keyboard("memory", "search", " "), "annabelle memory list")
    wrong(keyboard("memory", "timeline", "yesterday"), "SINCE is not a date", "2026-01-31")
    wrong(keyboard("memory", "timeline", "2026-01-02", "2026-01-01"), "UNTIL (2026-01-01) is before SINCE")
    wrong(keyboard("memory", "import", str(tmp_path / "none.md")), "There is no file")
    wrong(keyboard("memory", "import", str(tmp_path)), "nothing to import")
    wrong(keyboard("memory", "import", "/dev/zero"), "is not a file")
    wrong(keyboard("memory", "restore", "memory-1.db", "-y"), "There is no backup called memory-1.db.")
    wrong(keyboard("memory", "profile", "set", "city", "Lisbon"), "user.city")
    wrong(keyboard("memory", "profile", "set", "persona.shoes", "red"), "A persona has no field 'shoes'")
    wrong(keyboard("memory", "undo"), "There is no change to undo.")
    assert keyboard("memory", "stats", "--json").json["current_facts"] == before


@pytest.mark.req("UX-01")
def test_without_a_hub_every_command_says_how_to_start_one(home: Home, monkeypatch: pytest.MonkeyPatch):
    typed = Keyboard({"ANNABELLE_HOME": str(home.root)}, monkeypatch)
    (home.root / "some.jsonl").write_text("")
    for arguments in (("list",), ("search", "x"), ("import", str(home.root / "some.jsonl")), ("tidy",), ("embed",), ()):
        done = typed("memory", *arguments)
        assert (done.code, done.out) == (5, "")
        assert done.err == "Annabelle is not running.\nStart it with: annabelle up\n"
        assert json_only(typed("memory", *arguments, "--json").err)["error"]["code"] == "hub_unreachable"


@pytest.mark.req("UX-01")
def test_every_command_explains_itself(home: Home, monkeypatch: pytest.MonkeyPatch):
    typed = Keyboard({"ANNABELLE_HOME": str(home.root)}, monkeypatch)
    named = typed.said("memory", "--help")
    for command in EVERY_COMMAND:
        assert f"\n  {command} " in named
        about = typed.said("memory", command, "-h")
        assert "--json" in about
        assert command in ("backups", "restore") or "--agent" in about


@pytest.mark.req("MEM-11")
@pytest.mark.incident("I-30")
def test_each_agent_has_a_memory_of_its_own_in_every_command(keyboard: Keyboard, running: dict[str, str]):
    agents = Home(Path(running["ANNABELLE_HOME"])).agents_file
    wrong(keyboard("memory", "add", "Likes jazz", "--agent", "scout"), "There is no agent 'scout'.", "annabelle")
    agents.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "scout"}]}))
    scout = ("--agent", "scout")
    wait_until(lambda: keyboard("memory", "profile", "set", "user.trail", "north", *scout).code == 0, "a new agent")
    theirs = added(keyboard, "Scouts the northern trail", *scout)
    ours = added(keyboard, "Stays on the southern trail")
    for command in ("show", "why", "rm", "bring-back"):
        wrong(keyboard("memory", command, theirs), f"There is no fact {theirs}.")
        wrong(keyboard("memory", command, ours, *scout), f"There is no fact {ours}.")
        keyboard.said("memory", command, theirs, *scout)
    wrong(keyboard("memory", "edit", theirs, "Scouts nothing"), f"There is no fact {theirs}.")
    assert "northern" not in keyboard.said("memory", "list") + keyboard.said("memory", "search", "northern trail")
    for arguments in (("list",), ("search", "the trail"), ("timeline",)):
        shown = keyboard.said("memory", *arguments, *scout)
        assert "northern" in shown
        assert "southern" not in shown
    assert keyboard("memory", *scout, "--json").json["current_facts"] == 1
    assert "trail" not in keyboard.said("memory", "profile")
    exported = keyboard("memory", "export", *scout, "--json").json
    assert exported["counts"]["facts"] == 1
    assert Path(exported["folder"]).name == "scout"
    assert "facts: 1 unchanged" in keyboard.said("memory", "import", exported["folder"], *scout)
    for arguments in (("embed",), ("learn",), ("tidy",), ("changes",)):
        keyboard("memory", *arguments, *scout, "--json").json  # noqa: B018
    wrong(keyboard("memory", "undo", *scout), "There is no change to undo.")
    wrong(keyboard("memory", "list", "--agent", "../etc"), "--agent is not the id of an agent.")


def test_times_are_told_where_the_user_lives(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("USER_TIMEZONE", "Asia/Tokyo")
    client._load_zone.cache_clear()
    assert client.format_moment("2026-01-31T20:00:00Z") == "2026-02-01 05:00"
    assert (client.format_day("2026-01-31T20:00:00+00:00"), client.format_moment(None)) == ("2026-02-01", "")
    client._load_zone.cache_clear()


@pytest.mark.incident("I-30")
def test_another_person_types_with_their_own_token_and_has_their_own_memory(
    keyboard: Keyboard, running: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    ours = added(keyboard, "Rings the bell at noon")
    token = keyboard("users", "add", "ada").out.strip()
    monkeypatch.setenv("ANNABELLE_TOKEN", token)
    assert "noon" not in keyboard.said("memory", "list", "--all")
    wrong(keyboard("memory", "why", ours), f"There is no fact {ours}.")
    theirs = added(keyboard, "Rings the bell at midnight", "--agent", "annabelle")
    assert "midnight" in keyboard.said("memory", "search", "when does the bell ring")
    refused = keyboard("forget", "Rings the bell", "--yes")
    assert (refused.code, refused.out) == (2, "")
    assert "Only the owner" in refused.err
    monkeypatch.delenv("ANNABELLE_TOKEN")
    wrong(keyboard("memory", "why", theirs), f"There is no fact {theirs}.")
    assert "midnight" not in keyboard.said("memory", "search", "when does the bell ring")
