"""Which tools an agent may use."""

import pytest

from annabelle.toolbox.catalogue import AgentPolicy


@pytest.mark.req("POL-01")
@pytest.mark.parametrize(
    ("allowed", "denied", "name", "permitted"),
    [
        (None, (), "filer_read_file", True),
        (("filer_*",), (), "filer_read_file", True),
        (("filer_*",), (), "web_fetch", False),
        (("*",), ("filer_delete*",), "filer_delete_file", False),
        (("filer_delete_file",), ("*",), "filer_delete_file", False),
        (("*_read_*",), (), "filer_read_file", True),
        (("filer_read_file",), (), "filer_read_file_now", False),
        (("filer_?ead_file",), (), "filer_read_file", False),
        (("filer.*",), (), "filer_read_file", False),
        (("FILER_*",), (), "filer_read_file", False),
    ],
)
def test_deny_wins_and_a_star_is_the_only_wildcard(
    allowed: tuple[str, ...] | None, denied: tuple[str, ...], name: str, permitted: bool
) -> None:
    assert AgentPolicy(allowed, denied).permits(name) is permitted


@pytest.mark.incident("I-06")
def test_an_empty_list_of_allowed_tools_permits_nothing() -> None:
    assert not AgentPolicy(allowed=()).permits("filer_read_file")
    assert not AgentPolicy(allowed=("",)).permits("filer_read_file")
