"""Robots.txt as the standard reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.servers.searcher.robots import RobotsRule, RobotsRules

pytestmark = pytest.mark.req("SRV-SRC")

SITE = "https://a.example"


@pytest.mark.parametrize(
    ("text", "path", "is_open"),
    [
        ("", "/x", True),
        ("User-agent: *\nDisallow:", "/x", True),
        ("User-agent: *\nDisallow: /", "", False),
        ("user-AGENT : *\ndisallow : /a # why", "/ab", False),
        ("User-agent: *\nDisallow: /\nAllow: /open", "/open/x", True),
        ("User-agent: *\nAllow: /open\nDisallow: /", "/closed", False),
        ("User-agent: *\nAllow: /x\nDisallow: /x", "/x", True),
        ("User-agent: *\nDisallow: /*?print=", "/page?print=1", False),
        ("User-agent: *\nDisallow: /*?print=", "/page?other=1", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /only$", "/only/this", True),
        ("User-agent: *\nDisallow: /ä", "/%C3%A4", False),
        ("User-agent: other\nDisallow: /", "/x", True),
        ("User-agent: other\nUser-agent: annabelle/2\nDisallow: /", "/x", False),
        ("User-agent: Annabelle\nAllow: /\n\nUser-agent: *\nDisallow: /", "/x", True),
        ("User-agent: Annabelle\nUser-agent: *\nDisallow: /x", "/x", False),
        ("User-agent: annabelle\nDisallow: /a\n\nUser-agent: annabelle\nDisallow: /b", "/b", False),
        ("User-agent: annabelle\nDisallow: /\nSitemap: /s\nUser-agent: b\nAllow: /", "/x", False),
        ("Disallow: /", "/x", True),
        ("<html>soft 404</html>", "/x", True),
    ],
)
def test_the_longest_rule_that_fits_counts(text: str, path: str, is_open: bool) -> None:
    assert RobotsRules.parse(text, "Annabelle").open_to(f"{SITE}{path}") is is_open


@settings(deadline=None)
@given(
    pattern=st.text("ab/*", max_size=6).map(lambda text: f"/{text}"),
    path=st.text("ab/", max_size=8),
    ends=st.booleans(),
)
def test_a_pattern_fits_what_it_says(pattern: str, path: str, ends: bool) -> None:
    meaning = re.compile("".join(".*" if char == "*" else re.escape(char) for char in pattern) + ("$" if ends else ""))
    fits = RobotsRule(pattern + ("$" if ends else ""), allow=False).fits(f"/{path}")
    assert fits is (meaning.match(f"/{path}") is not None)


def test_of_a_very_long_path_the_beginning_is_judged() -> None:
    rules = RobotsRules.parse("user-agent: *\ndisallow: /private\ndisallow: /*end", "Annabelle")
    assert not rules.open_to(f"https://site.test/private{'a' * 60_000}")
    assert rules.open_to(f"https://site.test/{'a' * 60_000}end")
