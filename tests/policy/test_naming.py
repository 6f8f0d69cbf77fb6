"""A value is named as a whole or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.policy.person_words import PersonWords, content_words, find_addresses, page_key

NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
LETTERS = st.text("abcdefghij.-_", min_size=1, max_size=6).filter(lambda text: text.strip(".-_") != "")


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("Write to bob@x.com.", "bob@x.com"),
        ("Write to BOB@X.com, please", "bob@x.com"),
        ("(bob@x.com)", "Bob@x.com"),
        ("call +49 151 234567", "+49151234567"),
        ("tell @ann hello", "@ann"),
        ("tell ann hello", "@ann"),
        ("an bob@x.com, alice@y.org und carl@z.net", "alice@y.org"),
    ],
)
def test_an_address_that_was_said_is_named(said: str, address: str) -> None:
    assert PersonWords([said]).names_address(address)


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("Write to bob@x.com.evil.net", "bob@x.com"),
        ("Write to bob@x.com", "bob@x.com.evil.net"),
        ("Write to notbob@x.com", "bob@x.com"),
        ("Write to bob@x.com", "notbob@x.com"),
        ("Write to bob@x.com", "bоb@x.com"),  # a Cyrillic letter
        ("Write to bob@x.com", "bob@x.com\u200b"),
        ("Write to bob@x.com", "ｂob@x.com"),
        ("Write to bob", "bob@x.com"),
        ("call 0151234", "151234567"),
        ("", "bob@x.com"),
    ],
)
def test_a_look_alike_is_another_address(said: str, address: str) -> None:
    assert not PersonWords([said]).names_address(address)


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("Delete old-draft.md", "Documents/old-draft.md"),
        ("Delete Documents/old-draft.md.", "Documents/old-draft.md"),
        ("delete ./a.txt", "a.txt"),
        ("Send the tax report 2025 to Bob", "Documents/tax-report_2025.pdf"),
        ("Lösche „Brief.txt“", "Brief.txt"),
        ("the minutes' summary: minutes.md", "Notes/minutes.md"),
    ],
)
def test_a_file_is_named_by_its_path_its_name_or_the_words_of_it(said: str, path: str) -> None:
    assert PersonWords([said]).names_path(path)


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("Delete data.txt", "a.txt"),
        ("Delete a.txt.bak", "a.txt"),
        ("Delete a.txt", "data.txt"),
        ("Delete not-old-draft.md", "old-draft.md"),
        ("Delete old-draft.md", "Documents/not-old-draft.md"),
        ("Delete Documents/a.txt", "Other/a.txt"),
        ("Delete a.txt", "../a.txt"),
        ("Delete a.txt", "a\u202e.txt"),
        ("Delete the files", "files"),
        ("Read the document", "Documents"),
    ],
)
def test_a_file_with_another_name_or_place_is_another_file(said: str, path: str) -> None:
    assert not PersonWords([said]).names_path(path)


@pytest.mark.req("POL-04")
def test_a_page_is_named_by_its_whole_address_only() -> None:
    said = PersonWords(["Read https://www.example.com/a/b?x=1, and example.org/news."])
    assert said.names_page("http://example.com/a/b?x=1")
    assert said.names_page("https://example.org/news/")
    assert not said.names_page("https://example.com/a/b?x=2")
    assert not said.names_page("https://example.com.evil.net/a/b?x=1")
    assert not said.names_page("https://example.com@evil.net/a/b?x=1")
    assert not said.names_page("https://example.com/a")
    assert page_key("HTTPS://Example.com/A/#part") == "example.com/A"


@pytest.mark.req("POL-04")
def test_what_every_order_says_names_nothing() -> None:
    assert not PersonWords(["Delete the new mail and the meeting today"]).shares_word_with("Re: new meeting today")
    assert PersonWords(["Cancel the dentist's appointment"]).shares_word_with("Dentist Dr. Wu")
    assert content_words("Re: the mail") == frozenset()


@given(NAMES, NAMES, LETTERS)
@pytest.mark.req("POL-04")
def test_no_longer_address_is_named_by_a_shorter_one_nor_the_other_way(name: str, host: str, more: str) -> None:
    address = f"{name}@{host}.com"
    for other in (f"{more}{address}", f"{address}.{more.strip('.-_')}", f"{name}{more.strip('.-_')}@{host}.com"):
        if other != address:
            assert not PersonWords([f"write to {address} now"]).names_address(other)
            assert not PersonWords([f"write to {other} now"]).names_address(address)


@given(NAMES, NAMES, st.sampled_from(["txt", "md", "pdf"]))
@pytest.mark.req("POL-04")
def test_no_longer_file_name_is_named_by_a_shorter_one(name: str, more: str, ending: str) -> None:
    assert not PersonWords([f"delete {name}.{ending}"]).names_path(f"{more}{name}.{ending}")
    assert not PersonWords([f"delete {more}{name}.{ending}"]).names_path(f"{name}.{ending}")
    assert not PersonWords([f"delete {name}.{ending}.{more}"]).names_path(f"{name}.{ending}")


def test_addresses_are_found_with_and_without_names_around_them() -> None:
    assert find_addresses('"Lee, Ann" <ann@x.com>, Bob <bob@y.org>; carl@z.net') == [
        "ann@x.com",
        "bob@y.org",
        "carl@z.net",
    ]


@pytest.mark.req("POL-04")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["a.", "a@", "a-b.", "a/", "a", "http://", "1"])
def test_text_made_to_be_slow_to_read_is_read_anyway(piece: str) -> None:
    said = PersonWords([piece * 50_000])
    assert not said.names_page("https://example.com/a")
    assert not said.names_address("bob@example.com")
    assert not said.names_path("Documents/cv.md")
