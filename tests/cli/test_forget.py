"""`annabelle forget`: a look first, then for good."""

from __future__ import annotations

import json

import pytest

from cli.terminal import Terminal, run

SECRET = "Zürich Vault 4711"


def learn(running: dict[str, str], fact: str) -> int:
    stored = run(running, "tools", "call", "memory_store_fact", f"fact={fact}", "category=background", "--json")
    assert stored.returncode == 0, stored.stderr
    return int(json.loads(stored.stdout)["structured"]["fact_id"])


@pytest.mark.req("TRU-09")
def test_it_shows_where_something_stands_and_forgets_it_only_after_a_yes(running: dict[str, str]):
    number = learn(running, f"Ada hides it in {SECRET}")
    terminal = Terminal(running, "forget", SECRET.upper())
    terminal.expect(r"facts\s+1\s+deleted")
    terminal.expect(rf"fact {number}: Ada hides it in {SECRET}")
    terminal.expect(r"Forget all of this for good\?")
    terminal.type("n\r")
    terminal.expect(r"Nothing was changed\.")
    assert terminal.wait() == 130
    looked = run(running, "forget", SECRET, "--json")
    assert looked.returncode == 0, looked.stderr
    assert json.loads(looked.stdout)["places"][0] == {"place": "facts", "count": 1, "fate": "deleted"}

    done = run(running, "forget", SECRET, "--yes")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Forgotten. It can not be brought back."
    again = run(running, "forget", SECRET)
    assert again.returncode == 2
    assert again.stderr.splitlines()[0] == "It stands nowhere in these words."


def test_a_fact_is_forgotten_by_its_number_and_found_by_its_meaning(running: dict[str, str]):
    number = learn(running, "Ada's favourite colour is turquoise")
    near = run(running, "forget", "which colours does Ada like best")
    assert near.returncode == 2
    assert f"fact {number}: Ada's favourite colour is turquoise" in near.stdout
    assert near.stderr.splitlines()[-1].startswith(
        "Something like it is above; to forget one of these: annabelle forget"
    )

    done = run(running, "forget", "--fact", str(number), "--yes", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["facts"][0]["id"] == number
    assert run(running, "forget", "--fact", str(number)).stderr.startswith(f"There is no fact {number}.")


def test_it_can_be_typed_where_no_shell_keeps_it(running: dict[str, str]):
    learn(running, "Bob owes 1,250 crowns")
    done = run(running, "forget", "--yes", stdin="1,250 CROWNS\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["some words", "--fact", "1"], "Give the words or --fact, not both."),
        (["some words", "--with-source"], "--with-source belongs to --fact."),
        (["ab"], "The text to forget needs at least 3 characters."),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(running: dict[str, str], words: list[str], sentence: str):
    refused = run(running, "forget", *words)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, sentence)
