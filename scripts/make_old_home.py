"""Write a home with the code of this commit and pack it, so that later code can be tested on it.

    python scripts/make_old_home.py [NAME] [--no-kill]

A real hub with the scripted model of the tests talks, remembers, asks and is killed in the middle of two turns. The
home becomes tests/project/homes/NAME.tar.xz (by default NAME is the version); NAME.json says what is in there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from annabelle import __version__  # noqa: E402  what follows needs the path above
from annabelle.core.home import Home  # noqa: E402
from hub.hubs import HubProcess, wait_for  # noqa: E402
from support.few_servers import only  # noqa: E402
from support.scripted_model import Reply, Rule, ScriptedServer, plan_text  # noqa: E402

HOMES = ROOT / "tests" / "project" / "homes"
PLACE = Path("/tmp/annabelle-old-home")  # noqa: S108  a name no machine has to be known for; it gets into the files
SERVERS = only("filer", "memory", "notes")
SETTINGS = {
    "FACT_EXTRACTION_ENABLED": "false",
    "THINKER_SESSION_COMPACTION_THRESHOLD_CHARS": "1000",
    "THINKER_SESSION_COMPACTION_MIN_TURNS": "2",
    "THINKER_SESSION_COMPACTION_KEEP_RECENT": "1",
    "THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS": "0",
}
# As a person writes it, with nothing of this machine in it.
EXTERNAL = {"command": "${OLD_HOME_PYTHON}", "args": ["${OLD_HOME_TESTS}/support/servers/unchanging.py"]}
MACHINE = {
    "OLD_HOME_PYTHON": sys.executable,
    "OLD_HOME_TESTS": str(ROOT / "tests"),
    "EXTERNAL_SERVERS_NEED_YES": "true",
}
SUMMED_UP = "They planned the garden; the roses come first."
ABOUT = "They spoke about the harbour of Lisbon."
TALK = "and then we spoke of roses and of rain; " * 15
WAIT = 180.0
MODEL = [
    Rule(system="You sum up", reply=Reply(text=SUMMED_UP, cost=0.0001)),
    Rule(system="You note what", reply=Reply(text=ABOUT, cost=0.0001)),
    Rule(match="The killed turn", results=1, reply=Reply(hang=True)),
    # The order to spawn it holds the task, too.
    Rule(match=r"(?s)\A(?!.*spawn_subagent).*The helper's task", reply=Reply(hang=True)),
]

Json = dict[str, Any]


class Story:
    """What is done in the home, and what the test is told of it."""

    def __init__(self, hub: HubProcess, model: ScriptedServer) -> None:
        self._hub, self._model = hub, model
        self.facts: Json = {}

    def talk(self) -> None:
        """A conversation with tool calls in it; facts, a contact, a note, a file and a finished task come of it."""
        remember = ("memory_store_fact", {"fact": "Lives in Lisbon since May", "category": "background"})
        ada = ("memory_create_contact", {"name": "Ada Byron", "email": "ada@example.com", "company": "Engines"})
        note = ("notes_create_note", {"title": "Roses", "content": "Water them on Sundays.", "tags": ["garden"]})
        file = ("filer_create_file", {"path": "Documents/harbour.txt", "content": "The harbour opens at nine."})
        prices = ("filer_create_file", {"path": "prices.txt", "content": "Bread 2, milk 1."})
        queued: Json = {"type": "tool_call", "toolName": "filer_read_file", "parameters": {"path": "prices.txt"}}
        later = ("queue_task", {"name": "Read the prices", "action": queued})
        desk = ("update_workspace", {"add_notes": ["Prune in March"], "open_files": ["Documents/harbour.txt"]})
        bread = ("notes_add_todo", {"text": "Bread", "list": "Shopping", "due": "2026-12-01"})
        answer = self._say("main", "I live in Lisbon.", [remember, ada], "I will remember Lisbon.")
        self.facts["main"] = answer["threadId"]
        self._say("main", "Keep a note about the roses.", [note, file, prices], "The note is written.")
        self._say("main", "Put bread on my list.", [bread, desk], "Bread it is.")
        self._say("main", "Read the prices later.", [later], "I will read them later.")
        self._tool("memory_store_fact", fact="Prefers tea to coffee", category="preference")
        self._tool("memory_update_profile", updates={"persona": {"style": "Short answers, please."}})
        wait_for(lambda: self._states("/tasks", "tasks") == ["done"], "the end of the task", WAIT)

    def accept_a_server_and_stop_an_agent(self) -> None:
        self._hub.http.post("/servers/unchanging/accept", timeout=WAIT).raise_for_status()
        wait_for(lambda: self._tools("unchanging"), "the tools of the external server", WAIT)
        self._tool("unchanging_greet", name="Ada")
        wait_for(self._hub.home.pins_file.exists, "the pin", WAIT)
        self._hub.http.post("/stop", json={"target": "scout"}).raise_for_status()

    def let_ben_in(self) -> None:
        """Another person, with a token and a chat of their own."""
        command = [Path(sys.executable).parent / "annabelle", "users", "add", "ben", "--json"]
        made = subprocess.run(command, env=self._hub.environment, capture_output=True, text=True, check=True)
        self.facts["ben"] = json.loads(made.stdout)["token"]
        head = {"X-Annabelle-Token": self.facts["ben"]}
        text = self._text("I am Ben.", [], "Hello, Ben.")
        answer = self._hub.http.post("/message", params={"wait": WAIT}, json={"text": text}, headers=head, timeout=WAIT)
        assert answer.raise_for_status().json()["reply"]["source"] == "agent", answer.text

    def sum_up(self) -> None:
        """The main conversation grows until it is summed up; another one is archived and begun afresh."""
        for number in range(4):
            self._say("main", f"About the garden, part {number}.", [], f"Part {number}: {TALK}")
        wait_for(lambda: "compaction" in self._records("sessions/*.jsonl"), "a compaction", WAIT)
        answer = self._say("harbour", "Tell me of the harbour of Lisbon.", [], "It is wide and blue.")
        self.facts["harbour"] = answer["threadId"]
        self._hub.http.post(f"/threads/{answer['threadId']}/clear", timeout=WAIT).raise_for_status()
        self._say("harbour", "Good morning.", [], "Good morning to you.")
        wait_for(lambda: self._records("sessions/archive/*.jsonl"), "an archive", WAIT)

    def rule_and_ask(self) -> None:
        """Two rules, and a call that waits for a yes because of one."""
        self._hub.http.post("/rules", json={"words": "never send anything to mallory@example.com"}).raise_for_status()
        self._say("main", "Always ask before deleting files.", [], "I will.")
        delete = ("filer_delete_file", {"path": "prices.txt"})
        self._say("cleaning", "Delete the file prices.txt", [delete], "The prices are deleted.")
        (question,) = self._get("/approvals")["approvals"]
        assert question["state"] == "pending", question
        self.facts["approval"] = question["id"]

    def begin_to_be_killed(self) -> None:
        """Two turns that hang at the model: one after a tool call, one while a subagent works for it."""
        create = ("filer_create_file", {"path": "killed.txt", "content": "written once"})
        helper = ("spawn_subagent", {"task": "The helper's task: " + plan_text(say="The helper is done.")})
        self.facts["killed"] = self._post("killed", "The killed turn.", [create], "The killed turn is finished.")
        self.facts["helped"] = self._post("helped", "Ask a helper.", [helper], "The helper said: {result}")
        wait_for(lambda: self._asked("The killed turn", results=1), "the killed turn at the model", WAIT)
        wait_for(lambda: self._asked("The helper's task", results=0), "the helper at the model", WAIT)

    def _text(self, words: str, calls: list[tuple[str, Json]], say: str) -> str:
        return f"{words}\n{plan_text(calls, say, cost=0.001)}"

    def _say(self, chat: str, words: str, calls: list[tuple[str, Json]], say: str) -> Json:
        answer: Json = self._hub.say(self._text(words, calls, say), wait=WAIT, chatId=chat, channel="terminal")
        assert answer["reply"]["source"] == "agent", answer
        return answer

    def _post(self, chat: str, words: str, calls: list[tuple[str, Json]], say: str) -> str:
        text = self._text(words, calls, say)
        return str(self._hub.say(text, wait=0, chatId=chat, channel="terminal")["messageId"])

    def _tool(self, tool: str, /, **arguments: object) -> None:
        answer = self._hub.http.post("/tools/call", json={"name": tool, "arguments": arguments}, timeout=WAIT)
        assert not answer.raise_for_status().json()["is_error"], answer.text

    def _get(self, path: str) -> Json:
        return self._hub.http.get(path).raise_for_status().json()

    def _tools(self, server: str) -> list[str]:
        return [tool["name"] for tool in self._get("/tools/list")["tools"] if tool["server"] == server]

    def _states(self, path: str, key: str) -> list[str]:
        return [one["state"] for one in self._get(path)[key]]

    def _records(self, pattern: str) -> set[str]:
        files = self._hub.home.agent("annabelle").glob(pattern)
        return {str(json.loads(line).get("type")) for file in files for line in file.read_text().splitlines()}

    def _asked(self, words: str, results: int) -> bool:
        talks = [request.conversation for request in self._model.requests]
        return any(
            words in talk.user_text and len(talk.results) == results and "spawn_subagent" not in talk.user_text
            for talk in talks
        )


@contextmanager
def running(hub: HubProcess) -> Iterator[HubProcess]:
    try:
        yield hub.start()
    finally:
        hub.end()


def write(kill: bool) -> tuple[Home, Json]:
    """The home, with nothing running in it any more."""
    shutil.rmtree(PLACE, ignore_errors=True)
    home = Home(PLACE / "home").prepare()
    home.settings_file.write_text("APPROVAL_HOURS=720\n")
    agents = [{"agentId": "annabelle", "thinking": {"workspace": True}}, {"agentId": "scout"}]
    home.agents_file.write_text(json.dumps({"agents": agents}))
    (home.config / "external-mcps.json").write_text(json.dumps({"mcpServers": {"unchanging": EXTERNAL}}))
    with ScriptedServer(MODEL) as model:
        hub = HubProcess(home, model.openai_url, **SERVERS, **SETTINGS, **MACHINE)
        with running(hub):
            story = Story(hub, model)
            story.let_ben_in()
            story.accept_a_server_and_stop_an_agent()
            story.talk()
            story.sum_up()
            story.rule_and_ask()
            assert hub.stop() == 0
        if kill:
            with running(hub):
                story.begin_to_be_killed()
                children = hub.children()
                hub.kill()
                wait_for(lambda: not any(child.is_running() for child in children), "an end of all processes", WAIT)
    return home, story.facts


def clean(home: Home) -> None:
    """Leave out what is made again or says something of this machine: caches, logs, what a running hub writes."""
    for folder in (home.embedding_cache, home.run, home.backups, home.models, home.browser_profiles):
        shutil.rmtree(folder, ignore_errors=True)
    for file in home.logs.iterdir():
        if not file.name.startswith("audit") and file != home.traces_file:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    for database in home.root.rglob("*.db"):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for lock in [*home.root.rglob("*.lock"), *home.root.rglob("*.db-wal"), *home.root.rglob("*.db-shm")]:
        lock.unlink()


def pack(home: Home, file: Path) -> None:
    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(file, "w:xz", preset=9) as archive:
        archive.add(home.root, "home", filter=anonymous)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default=__version__)
    parser.add_argument("--no-kill", action="store_true", help="stop the hub orderly, with no turn under way")
    options = parser.parse_args()
    home, facts = write(kill=not options.no_kill)
    clean(home)
    HOMES.mkdir(exist_ok=True)
    pack(home, HOMES / f"{options.name}.tar.xz")
    (HOMES / f"{options.name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    sys.stdout.write(f"{HOMES / options.name}.tar.xz: {(HOMES / f'{options.name}.tar.xz').stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
