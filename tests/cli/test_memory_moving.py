"""`annabelle memory` for many rows at once: files, vectors, tidying, learning, backups, and the profile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.store import backup
from cli.terminal import Terminal, wait_until
from cli.typed import Keyboard
from support.scripted_model import Reply, Rule, ScriptedServer

MANY = 3_000


@pytest.fixture
def at_home(running: dict[str, str]) -> Home:
    return Home(Path(running["ANNABELLE_HOME"]))


@pytest.fixture
def rules(model: ScriptedServer) -> Iterator[ScriptedServer]:
    yield model
    model.rules()


def facts_of(keyboard: Keyboard, *options: str) -> dict[str, str]:
    """Every fact by its text, with its state."""
    rows = keyboard("memory", "list", "-n", "200", *options, "--json").json["facts"]
    return {row["fact"]: row["retired_because"] or "current" for row in rows}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A file of facts that takes a moment."""
    path = tmp_path / "notes.jsonl"
    lines = ({"fact": f"Note {n} is about word{n * 7}", "category": "project"} for n in range(MANY))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.req("MEM-08")
def test_an_export_is_edited_and_imported_again_from_wherever_it_lies(
    keyboard: Keyboard, at_home: Home, tmp_path: Path
):
    for fact in ("Works at Initech", "Drinks green tea", "Speaks Danish"):
        keyboard.said("memory", "add", fact)
    assert re.search(r"[3-9] facts", keyboard.said("memory", "export", "--no-conversations"))
    page = at_home.memory_export / "annabelle" / "facts.md"
    lines = page.read_text().replace("at Initech", "at Globex").splitlines(keepends=True)
    elsewhere = tmp_path / "edited"
    elsewhere.mkdir()
    (elsewhere / "facts.md").write_text("".join(line for line in lines if "Danish" not in line))
    (elsewhere / "secret.txt").write_text("not for the memory")

    preview = keyboard.said("memory", "import", str(elsewhere), "--dry-run")
    assert "Nothing was changed yet" in preview
    assert facts_of(keyboard)["Works at Initech"] == "current"
    assert "1 corrected" in keyboard.said("memory", "import", str(elsewhere / "facts.md"))
    known = facts_of(keyboard, "--all")
    assert (known["Works at Globex"], known["Works at Initech"]) == ("current", "superseded")
    assert known["Speaks Danish"] == "current", "a line that is gone is no order to forget"
    keyboard.said("memory", "import", str(elsewhere), "--prune")
    assert facts_of(keyboard, "--all")["Speaks Danish"] == "deleted"
    assert [path.name for path in at_home.memory_export.iterdir()] == ["annabelle"], "copies are gone"
    found = keyboard("memory", "search", "Globex", "--json").json["facts"][0]
    assert "imported from a file" in keyboard.said("memory", "why", str(found["id"]))
    assert found["source"] == "import of facts.md"
    # The export folder itself means the one export in it.
    assert "Imported" in keyboard.said("memory", "import", str(at_home.memory_export))


@pytest.mark.req("MEM-08")
def test_of_a_half_file_nothing_is_imported(keyboard: Keyboard, tmp_path: Path):
    before = facts_of(keyboard)
    whole = keyboard("memory", "export", "-f", "json", "--json").json
    text = (Path(whole["folder"]) / whole["files"][0]).read_text()
    lines = '{"fact": "Likes rain", "category": "preference"}\n{"fact": "Lik'
    for name, content in (("half.json", text[: len(text) // 2]), ("half.jsonl", lines)):
        half = tmp_path / name
        half.write_text(content)
        refused = keyboard("memory", "import", str(half))
        assert (refused.code, refused.out) == (2, "")
        assert "Nothing was imported." in refused.err
    assert facts_of(keyboard) == before


@pytest.mark.req("UX-01", "MEM-08")
def test_an_import_shows_how_far_it_is_and_goes_on_when_it_was_broken_off(
    visit: Callable[..., Terminal], keyboard: Keyboard, notes: Path, at_home: Home
):
    first = visit("memory", "import", str(notes))
    first.expect(r"Importing .*500/3000")
    first.type("\x03")
    assert first.wait() == 130
    assert "Broken off. The same command goes on with it." in first.seen
    assert list(at_home.memory_export.glob("import-*")) == []
    assert "Note 1 is about word7" not in facts_of(keyboard, "-c", "project"), "all of it or nothing"
    second = visit("memory", "import", str(notes))
    second.expect(r"Importing .*3000/3000")
    assert second.wait() == 0
    assert f"facts: {MANY} added." in second.seen
    again = keyboard("memory", "import", str(notes))
    assert (again.err, f"{MANY} known" in again.out) == ("", True), "in a pipe there is no bar"
    third = visit("memory", "embed")
    assert third.wait() == 0
    assert re.search(r"rows got a vector of embedded/\w+; all \d+ have one", third.seen)
    assert (
        keyboard("memory", "search", "word2800", "-n", "1", "--json").json["facts"][0]["fact"].startswith("Note 400 ")
    )


@pytest.mark.req("MEM-07")
def test_tidying_is_proposed_done_after_a_yes_and_undone(
    visit: Callable[..., Terminal], keyboard: Keyboard, rules: ScriptedServer
):
    first, second = (
        str(keyboard("memory", "add", fact, "-c", "contact", "--json").json["fact_id"])
        for fact in ("Ana is a colleague", "Ana is a colleague from Porto")
    )
    action = {
        "action": "merge", "ids": [int(first), int(second)], "fact": "Ana from Porto is a colleague",
        "category": None, "reason": "the same person",
    }  # fmt: skip
    rules.rules(Rule(system="tidy what an assistant remembers", reply=Reply(text=json.dumps([action]))))
    unsure = visit("memory", "tidy", "-c", "contact")
    shown = unsure.expect(r"Do this\? \[y/N\]: ")
    for words in ("Proposed by the model", first, second, "+ ", "Ana from Porto is a colleague", "(the same person)"):
        assert words in shown
    unsure.type("n\n")
    assert unsure.wait() == 130
    assert "Nothing was changed." in unsure.seen
    plan = keyboard("memory", "tidy", "-c", "contact", "--json").json
    assert (plan["applied"], [one["factIds"] for one in plan["actions"]]) == (False, [[int(first), int(second)]])
    assert "Done. To undo it: annabelle memory undo " in keyboard.said("memory", "tidy", "-c", "contact", "-y")
    assert facts_of(keyboard, "-c", "contact") == {"Ana from Porto is a colleague": "current"}
    assert keyboard.said("memory", "changes").splitlines()[1].split()[3] == "-"
    assert f"Current again: {first}, {second}" in keyboard.said("memory", "undo")
    assert set(facts_of(keyboard, "-c", "contact")) == {"Ana is a colleague", "Ana is a colleague from Porto"}


@pytest.mark.req("MEM-07")
def test_learning_now_tells_what_was_learnt_and_what_was_no_use(keyboard: Keyboard, rules: ScriptedServer):
    words = "My sister Tove is a carpenter, and she lives in a small town close to Aarhus."
    fact = {
        "fact": "The user's sister Tove is a carpenter", "category": "contact", "confidence": 0.95, "turn": 1,
        "quote": "My sister Tove is a carpenter",
    }  # fmt: skip
    assert keyboard("ask", words).code == 0
    noting = "worth remembering for years"

    def learnt() -> bool:
        return keyboard("memory", "stats", "--json").json["conversations"] > 0

    wait_until(learnt, "the turn in the memory")
    rules.rules(Rule(system=noting, reply=Reply(text=f"Here you are: {json.dumps([fact])}")))
    assert "Nothing was learnt" in keyboard.said("memory", "learn")
    keyboard.said("ask", words + " She has two dogs.")
    wait_until(lambda: keyboard("memory", "stats", "--json").json["conversations"] > 1, "the next turn in the memory")
    rules.rules(Rule(system=noting, reply=Reply(text=json.dumps([fact]))))
    said = keyboard.said("memory", "learn")
    number = said.split()[0]
    assert "The user's sister Tove is a carpenter" in said
    assert '"My sister Tove is a carpenter"' in keyboard.said("memory", "why", number)
    assert keyboard.said("memory", "learn") == "Everything was looked through already.\n"


@pytest.mark.req("CTX-06", "MEM-02")
def test_the_profile_is_set_edited_listed_and_rolled_back(
    keyboard: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert "empty" in keyboard.said("memory", "profile")
    assert keyboard.said("memory", "profile", "set", "user.city", "Lisbon").startswith("Changed user.city.")
    keyboard.said("memory", "profile", "set", "user.pets", '["Rex", "Mia"]')
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/Lisbon/Porto/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    keyboard.said("memory", "profile", "edit")
    assert re.search(r"^user\.city +Porto\nuser\.pets +Rex, Mia\nversion +3,", keyboard.said("memory", "profile"))
    assert keyboard.said("memory", "profile", "edit").startswith("Nothing to change")
    keyboard.said("memory", "profile", "unset", "user.pets")
    keyboard.said("memory", "profile", "rollback", "2")
    assert keyboard("memory", "profile", "--json").json["profile"]["user"] == {"city": "Lisbon", "pets": ["Rex", "Mia"]}
    history = keyboard.said("memory", "profile", "history").splitlines()
    assert [line.split()[0] for line in history] == ["VERSION", "5", "4", "3", "2", "1"]
    assert "back to version 2" in history[1]
    editor.write_text("#!/bin/sh\necho '{' > \"$1\"\n")
    refused = keyboard("memory", "profile", "edit")
    assert (refused.code, refused.out) == (2, "")
    assert "not valid JSON" in refused.err


@pytest.mark.req("MEM-01")
def test_a_backup_is_put_back_after_a_yes(visit: Callable[..., Terminal], keyboard: Keyboard, at_home: Home):
    keyboard.said("memory", "add", "Was there before the backup", "-c", "decision")
    backup.copy_file(at_home.memory_file, at_home.backups, "0001", now())
    keyboard.said("memory", "add", "Came after the backup", "-c", "decision")
    name = keyboard("memory", "backups", "--json").json["backups"][0]["name"]
    assert name in keyboard.said("memory", "backups")
    asking = visit("memory", "restore")
    asking.expect(r"\[y/N\]: ")
    asking.type("y\n")
    assert asking.wait() == 0
    assert name in asking.seen
    assert set(facts_of(keyboard, "-c", "decision")) == {"Was there before the backup"}
