"""The phrases beside the servers: every tool people ask for has some, and each can be filled and parsed (FST-02)."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import annabelle
from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.language.phrases import FILE_NAME, NAMED, NTH, PhraseBook, Sentence, ToolPhraseFile
from annabelle.language.tool_odds import packaged_tool_odds
from servers.every_server import NAMES, build

PACKAGE = Path(annabelle.__file__).parent
FILES = [*sorted(PACKAGE.glob(f"servers/*/{FILE_NAME}")), PACKAGE / "hub" / "tools" / FILE_NAME]
SHARED = sorted((PACKAGE / "language" / "en" / "phrases").glob("*.toml"))
LEAST = 6
SURFACE = Path(__file__).parents[1] / "project" / "public_surface.json"
# Models use these on their own. The phrases of `memory_store_fact` are those of the hub's `store_fact`.
NOT_ASKED_FOR = {
    *("send_message", "send_telegram", "search_tools", "search_agent_history", "update_workspace"),
    "memory_store_fact",
    # Goals are set up in a chat of their own, and their tools are for their agents.
    *("create_goal", "create_task", "create_note", "search_notes", "manage_learning", "manage_check_in"),
    *("emit_progress", "generate_feed"),
}
DEV_ROWS = Path(__file__).with_name("dev_rows.txt")


@pytest.fixture(scope="module")
def book() -> PhraseBook:
    return PhraseBook.load([*FILES, *SHARED])


@pytest.mark.req("FST-02")
def test_every_server_has_phrases_beside_its_manifest() -> None:
    assert {file.parent for file in PACKAGE.glob("servers/*/manifest.toml")} == {file.parent for file in FILES[:-1]}


@pytest.mark.req("FST-02")
def test_every_tool_that_is_built_has_phrases(book: PhraseBook, home: Home) -> None:
    """The hub's own tools stand in the list of the public surface, which a test of its own compares with the code."""
    built = {f"{name}_{tool.name}": tool.audience for name in NAMES for tool in build(name).tools.values()}
    known = {*built, *json.loads(SURFACE.read_text())["tools"]}
    with_phrases = {tool for file in book.files for tool, told in file.tools.items() if told.phrases}
    assert {tool for tool in known - with_phrases if built.get(tool) != "hub"} == NOT_ASKED_FOR
    assert with_phrases <= known


@pytest.mark.req("FST-02")
def test_every_tool_has_enough_phrases_and_most_have_many(book: PhraseBook) -> None:
    counted = {tool: len(book.phrases(tool)) for file in book.files for tool in file.tools}
    assert {tool: count for tool, count in counted.items() if count < LEAST} == {}
    assert sum(count >= 25 for count in counted.values()) > len(counted) // 2


@pytest.mark.req("FST-02")
def test_every_slot_has_a_list_and_every_follow_up_a_tool_it_follows(book: PhraseBook) -> None:
    known = {tool for file in book.files for tool in file.tools}
    wrong: list[str] = []
    for file in book.files:
        said = [phrase for told in file.tools.values() for phrase in told.phrases]
        followed = [entry for told in file.tools.values() for entry in told.follow_ups]
        said += [entry.say for entry in (*followed, *file.no_tool)]
        said += [entry.answer for entry in followed if entry.answer]
        said += [f"{{x:{entry.items}}}" for entry in followed if entry.items]
        for phrase in said:
            for _, kind in Sentence.parse(phrase).slots():
                if kind not in (NTH, NAMED) and kind not in file.values and kind not in book.shared:
                    wrong.append(phrase)
        wrong += [entry.say for entry in followed if entry.after not in known]
    assert wrong == []


@pytest.mark.req("FST-03")
def test_the_weights_of_the_selection_know_the_tools_that_have_phrases_and_no_others(book: PhraseBook) -> None:
    odds = packaged_tool_odds()
    assert odds is not None
    with_phrases = {tool for file in book.files for tool, told in file.tools.items() if told.phrases}
    assert set(odds.names) - {""} == with_phrases, "run: make train-selector"


@pytest.mark.req("FST-02")
@pytest.mark.parametrize(
    "content", ["x = ", "[t]\nphrases = [1]\n", "[t]\nphrase = ['a']\n", "[t]\nphrases = ['']\n", "no_tool = 3\n"]
)
def test_a_damaged_file_is_one_sentence_that_names_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(content)
    with pytest.raises(ConfigMistake, match=r"phrases\.toml cannot be read: .+\.") as caught:
        ToolPhraseFile.read(file)
    assert caught.value.field == str(file)


def test_a_phrase_says_what_is_meant_and_not_said() -> None:
    sentence = Sentence.parse("!list {path:folder} with all inside => recursive=true; depth=3")
    assert (sentence.text, sentence.is_order) == ("list {path:folder} with all inside", True)
    assert sentence.given == {"recursive": "true", "depth": "3"}
    assert sentence.slots() == [("path", "folder")]


@pytest.mark.req("FST-02")
def test_no_phrase_is_a_row_that_figures_are_measured_on(book: PhraseBook) -> None:
    """Rows of three words and more, known by a hash of their words alone."""
    rows = set(DEV_ROWS.read_text().split())
    said = [phrase for file in book.files for known in file.tools.values() for phrase in known.phrases]
    said += [one.say for file in book.files for known in file.tools.values() for one in known.follow_ups]
    said += [one.say for file in book.files for one in file.no_tool]
    assert len(said) > 9_000
    assert [phrase for phrase in said if _hash_words(Sentence.parse(phrase).text) in rows] == []
    assert _hash_words("Pride and Prejudice, who wrote?") in rows, "order and case do not matter"


def _hash_words(text: str) -> str:
    words = sorted(set(re.findall(r"[^\W_]+", text.lower().replace("'", "").replace("’", ""))))
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]
