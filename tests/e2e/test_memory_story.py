"""The memory as a person lives with it: told here, known there, corrected, edited by hand, and forgotten."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cli.terminal import environment, run
from cli.typed import Keyboard
from e2e.days import MakeHub, reply
from hub.hubs import HubProcess
from support.canary import Canary
from support.scripted_model import Call, Reply, Rule, ScriptedServer

OLD = Canary("Quillfin Marrow", "quillfin")
NEW = Canary("Brindlewake Ostra", "brindlewak")


class Terminal:
    """`annabelle` beside the hub, as the person of the house types it."""

    def __init__(self, hub: HubProcess, patch: pytest.MonkeyPatch) -> None:
        self._known = environment(hub.home)
        self._keyboard = Keyboard(self._known, patch)

    def __call__(self, *arguments: str, code: int = 0) -> str:
        done = self._keyboard(*arguments)
        assert done.code == code, (arguments, done)
        return done.out

    def ask(self, *words: str) -> str:
        """A question, in a process of its own."""
        done = run(self._known, "ask", *words)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout


def calling(words: str, tool: str, arguments: dict[str, Any], then: str) -> list[Rule]:
    """When these words are said, the model calls the tool and then says this."""
    return [
        Rule(match=words, results=0, reply=Reply(tool_calls=[Call(name=tool, arguments=arguments)])),
        Rule(match=words, results=1, reply=Reply(text=then)),
    ]


def prompt(rules: ScriptedServer, words: str) -> tuple[str, str]:
    """What the model was told when these words were last said: the static part, and what came with the message."""
    asked = [one for one in rules.requests if words in one.conversation.user_text]
    assert asked, f"the model was never asked {words!r}"
    turns = asked[-1].conversation.turns
    return "\n".join(turn.text for turn in turns if turn.kind == "system"), asked[-1].conversation.user_text


def known_facts(text: str) -> list[str]:
    """The facts among the memories of a prompt, each with its source."""
    return re.findall(r"<fact [^>]*>[^<]*</fact>", text)


@pytest.mark.req("TRU-09", "MEM-09", "MEM-12", "MEM-03")
def test_what_is_told_is_known_elsewhere_after_a_crash_corrected_and_forgotten(
    make_hub: MakeHub, rules: ScriptedServer, monkeypatch: pytest.MonkeyPatch
):
    hub = make_hub().start()
    annabelle = Terminal(hub, monkeypatch)
    # Told in a chat over HTTP.
    fact = {"fact": f"The user's boat is called {OLD.text}", "category": "background"}
    rules.rules(*calling("Please remember", "memory_store_fact", fact, "I will."))
    told = hub.say(f"Please remember it well: my boat is called {OLD.text}.", chatId="kitchen")
    assert reply(told) == "I will."

    # Everything dies and comes back.
    family = [process.pid for process in hub.children()]
    assert len(family) >= 3
    hub.kill()
    hub.start()

    # Asked in other words at the terminal: the fact is in the prompt, with where it comes from.
    correction = {"fact_id": 1, "fact": f"The user's boat is called {NEW.text}"}
    rules.rules(
        Rule(match=r"name of my ship[^.]*\Z", reply=Reply(text=f"It is the {OLD.text}.")),
        *calling(r"has a new name, [^.]*\.\Z", "memory_update_fact", correction, "Noted."),
        Rule(match=r"What do I sail[^.]*\Z", reply=Reply(text="Your boat.")),
    )
    assert annabelle.ask("What is the name of my ship?") == f"It is the {OLD.text}.\n"
    _, said = prompt(rules, "name of my ship")
    (line,) = [one for one in known_facts(said) if OLD.text in one]
    assert re.search(r'id="1" source="api on \d+ \w+ \d{4}"', line)
    why = annabelle("memory", "why", "1")
    assert "stored by the agent during a conversation" in why
    assert str(told["messageId"]) in why
    assert f"user: Please remember it well: my boat is called {OLD.text}." in why

    # Asked once more over HTTP, from another chat.
    assert reply(hub.say("Tell me the name of my ship again?", chatId="garden")) == f"It is the {OLD.text}."
    assert [one for one in known_facts(prompt(rules, "name of my ship again")[1]) if OLD.text in one] == [line]

    # Corrected in a chat: the old one is history, and only the new one is known from then on.
    assert reply(hub.say(f"The boat has a new name, {NEW.text}.", chatId="kitchen")) == "Noted."
    everything = json.loads(annabelle("memory", "list", "--all", "--json"))["facts"]
    results = [one.conversation.results for one in rules.requests if "has a new name" in one.conversation.user_text]
    assert [(row["id"], row["retired_because"]) for row in everything] == [(2, None), (1, "superseded")], results
    assert f"Before: 1 [background, superseded by 2] The user's boat is called {OLD.text}" in annabelle(
        "memory", "why", "2"
    )
    annabelle.ask("--new", "What do I sail, and what is the boat called?")
    facts = known_facts(prompt(rules, "What do I sail")[1])
    assert [one for one in facts if NEW.text in one]
    assert not [one for one in facts if OLD.text in one]

    # Forgotten: looked at first, then gone from every byte of the home, through a restart, and for the model.
    home = hub.home.root
    annabelle("memory", "export")
    for canary in (OLD, NEW):
        stands = {name.removesuffix("-wal") for name in canary.files(home)}
        assert {"data/memory.db", "data/annabelle.db", "memory-export/annabelle/conversations"} <= {
            name if name.startswith("data") else name.rpartition("/")[0] for name in stands
        }, stands
        shown = annabelle("forget", canary.text.lower(), code=130)
        assert re.search(r"^facts +1 +deleted$", shown, re.M)
        assert canary.files(home)
        assert "Forgotten." in annabelle("forget", canary.text.lower(), "--yes")
        assert canary.files(home) == set()
    hub.stop()
    assert OLD.files(home) | NEW.files(home) == set()
    hub.start()
    assert "No facts" in annabelle("memory", "list", "--all")
    annabelle.ask("What do I sail after all?")
    static, said = prompt(rules, "What do I sail after all")
    assert not any(canary.within((static + said).encode()) for canary in (OLD, NEW))
    assert OLD.files(home) | NEW.files(home) == set()


@pytest.mark.req("CTX-06", "MEM-08")
def test_a_profile_edited_as_a_file_is_in_the_very_next_prompt(
    house: HubProcess, rules: ScriptedServer, monkeypatch: pytest.MonkeyPatch
):
    annabelle = Terminal(house, monkeypatch)
    annabelle("memory", "profile", "set", "user.city", "Aveiro")
    house.say("Who are you before the edit?")
    static, _ = prompt(rules, "before the edit")
    assert "You are Annabelle" in static
    assert "<user-profile>\ncity: Aveiro\n</user-profile>" in static
    annabelle("memory", "export")
    page = house.home.memory_export / "annabelle" / "profile.md"
    text = page.read_text()
    for old, new in (("- name:", "- name: Nell"), ("- tone:", "- tone: dry as sand"), ("Aveiro", "Sagres")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    page.write_text(text)
    assert "profile: 1" in annabelle("memory", "import", str(page))
    house.say("Who are you after the edit?")
    static, _ = prompt(rules, "after the edit")
    assert "You are Nell" in static
    assert "Your tone: dry as sand" in static
    assert "city: Sagres" in static
    assert "Aveiro" not in static
    annabelle("memory", "profile", "rollback", "0")
    house.say("Who are you once more?")
    static, _ = prompt(rules, "once more")
    assert "You are Annabelle" in static
    assert "Sagres" not in static
