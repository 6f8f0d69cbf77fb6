"""Of the vault only what the order names is opened, and only that is typed (POL-06)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from annabelle.core.tools import JsonObject
from annabelle.policy.seen_content import SeenContent, SeenResult
from policy.house import Turn

LISTED: JsonObject = {"items": [{"id": "i1", "title": "Bank"}, {"id": "i2", "title": "Netflix"}]}
HANDLE = "secret://onepassword/abcdefghij234567"
VIEW = '- textbox "Password" [ref=e1]'


def opens(says: str, *earlier: str, tool: str = "onepassword_get_item", **arguments: object) -> str:
    """The verdict, in a conversation where nothing foreign was seen."""
    now = Turn()
    for words in (*reversed(earlier), says):
        now.says(words)
    now.facts = replace(
        now.facts, seen=SeenContent((SeenResult("onepassword_list_items", "vault", structured=LISTED),))
    )
    return now.decides(tool, dict(arguments)).verdict


def secret(says: str, reference: str) -> str:
    return opens(says, tool="onepassword_read_secret", reference=reference)


@pytest.mark.req("POL-06", "POL-04")
def test_only_an_item_whose_title_stands_in_the_order_is_read() -> None:
    says = "Log in at http://s/story with my Netflix password"
    assert opens(says, item="Netflix") == "allow"
    assert opens(says, item="i2", vault="Private") == "allow"
    assert opens(says, item="Bank") == "ask"
    assert opens(says, item="i1") == "ask"
    assert secret(says, "op://Private/Netflix/password") == "allow"
    assert secret(says, "op://vp/i2/password") == "allow"
    assert secret(says, "op://Netflix/Bank/password") == "ask"
    assert secret(says, "op://vp/i1/Netflix") == "ask"


@pytest.mark.req("POL-06")
@pytest.mark.parametrize(
    ("says", "item", "verdict"),
    [
        ("what is the password of my Work Bank?", "Work Bank", "allow"),
        ("what is the password of my bank?", "Work Bank", "ask"),
        ("log in with my mail account", "E-Mail", "ask"),
        ("log in with the item E-Mail", "E-Mail", "allow"),
        ("log in with Netflix, but leave Bank alone", "Bank", "ask"),
        ("log in there", "unknown0id", "ask"),
    ],
)
def test_the_whole_title_counts(says: str, item: str, verdict: str) -> None:
    assert opens(says, item=item) == verdict


@pytest.mark.req("POL-06")
def test_what_was_spoken_of_before_opens_nothing_now() -> None:
    assert opens("now log in to the story", "what is my username at the Bank?", item="Bank") == "ask"
    assert opens("yes please", "log in with my Bank password", item="Bank") == "allow"


def types(says: str, vault: JsonObject) -> str:
    now = Turn().says(says)
    page = SeenResult("web_browser_snapshot", "web", text=VIEW, structured={"url": "http://s/shop", "view": VIEW})
    now.facts = replace(
        now.facts, seen=SeenContent((page, SeenResult("onepassword_read_secret", "vault", structured=vault)))
    )
    return now.decides("web_browser_type", {"ref": "e1", "text": HANDLE}).verdict


@pytest.mark.req("POL-06", "POL-04")
@pytest.mark.parametrize(
    ("vault", "verdict"),
    [
        ({"handle": HANDLE, "item": "Shop", "urls": ["http://s"]}, "allow"),
        ({"id": "i1", "title": "Shop", "urls": ["http://s"], "fields": [{"label": "p", "handle": HANDLE}]}, "allow"),
        ({"handle": HANDLE, "item": "Bank", "urls": ["http://s"]}, "ask"),
        ({"id": "i1", "title": "Bank", "urls": ["http://s"], "fields": [{"label": "p", "handle": HANDLE}]}, "ask"),
        ({"handle": HANDLE, "item": "Shop", "urls": []}, "ask"),
        ({"handle": f"{HANDLE}x", "item": "Shop", "urls": ["http://s"]}, "ask"),
    ],
)
def test_a_handle_stands_for_its_item(vault: JsonObject, verdict: str) -> None:
    assert types("Open http://s/shop and log in with the login called Shop from 1password", vault) == verdict
