"""What is forgotten goes from summaries, from turns that were summed up and from the archive too (TRU-09)."""

from __future__ import annotations

import json

import pytest

from e2e.days import MakeHub, plan, reply
from e2e.test_forget import FOREIGN, counts, forget
from hub.hubs import HubProcess, wait_for
from support.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]
from support.scripted_model import Reply, Rule, ScriptedServer

QUICK = {
    "FACT_EXTRACTION_ENABLED": "false",
    "THINKER_SESSION_COMPACTION_MIN_TURNS": "3",
    "THINKER_SESSION_COMPACTION_KEEP_RECENT": "1",
    "THINKER_SESSION_COMPACTION_THRESHOLD_CHARS": "1000",
    "THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS": "0",
}
LONG = "a long story " * 60


def talk(hub: HubProcess) -> None:
    for number in range(4):
        said = hub.say(plan(f"You said {FOREIGN.text} {number}. {LONG}"))
        assert FOREIGN.text in reply(said)


def holding(hub: HubProcess, url: str | None) -> set[str]:
    return FOREIGN.files(hub.home.root) if url is None else FOREIGN.tables(url)


@pytest.mark.req("TRU-09", "SES-03")
def test_what_is_forgotten_goes_from_archives_summaries_and_summed_up_turns(
    make_hub: MakeHub, rules: ScriptedServer
) -> None:
    nothing_is_left(make_hub, rules, None)


@pytest.mark.req("TRU-09", "SES-03")
def test_what_is_forgotten_on_postgresql_goes_from_them_too(
    make_hub: MakeHub, rules: ScriptedServer, postgres_url: str
) -> None:
    nothing_is_left(make_hub, rules, postgres_url)


def nothing_is_left(make_hub: MakeHub, rules: ScriptedServer, url: str | None) -> None:
    summary = Reply(text=f"They spoke of {FOREIGN.text}.")
    rules.rules(Rule(system="You sum up", reply=summary), Rule(system="You note what", reply=summary))
    settings = QUICK if url is None else {**QUICK, "DATABASE_URL": url}
    archive = "agents/annabelle/sessions/archive/" if url is None else "public.archives"
    older = "agents/annabelle/sessions/older/" if url is None else "public.sessions"

    def stands(place: str) -> bool:
        return any(name.startswith(place) for name in holding(hub, url))

    hub = make_hub(**settings, AGENT_SESSION_TIMEOUT="0.02").start()
    talk(hub)
    wait_for(lambda: stands(archive), "an archived conversation")
    assert hub.stop() == 0
    hub = make_hub(**settings).start()
    talk(hub)
    wait_for(lambda: stands(older), "turns that were summed up")

    seen = forget(hub, FOREIGN, preview=True)
    done = forget(hub, FOREIGN, preview=False)

    assert "sessions" in counts(seen)
    assert ("archives" in counts(done)) == (url is not None)
    assert holding(hub, url) | FOREIGN.files(hub.home.root) == set()
    # What is left of it can still be read: the conversation goes on, and its history can be searched.
    answer = hub.say(plan("Found: {result}", ("search_agent_history", {"query": ""})))
    assert "[forgotten]" in reply(answer)
    assert holding(hub, url) | FOREIGN.files(hub.home.root) == set()
    if url is None:
        files = [*(hub.home.agent("annabelle") / "sessions").rglob("*.jsonl")]
        assert len(files) >= 2
        assert all(json.loads(line) for file in files for line in file.read_text().splitlines())
