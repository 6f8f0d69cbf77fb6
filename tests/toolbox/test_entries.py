"""external-mcps.json, entry by entry."""

import json

import pytest

from annabelle.toolbox.external.entries import ReadEntries, UnreadableEntries, read_entries
from annabelle.toolbox.status import ScanDirections

HUB = {"PATH": "/bin", "KEY": "hub-key-value", "EMPTY": ""}


def read(servers: object) -> ReadEntries:
    return read_entries(json.dumps({"mcpServers": servers}), HUB, frozenset({"filer"}), 30)


@pytest.mark.req("EXT-02")
def test_variables_are_resolved_in_every_place_they_may_stand() -> None:
    reading = read(
        {
            "local": {
                "command": "${PATH}/run",
                "args": ["--key=${KEY}"],
                "env": {"TOKEN": "x${KEY}y", "NONE": "${EMPTY}"},
            },
            "far": {"url": "https://example.test/${KEY}", "headers": {"Authorization": "Bearer ${KEY}"}},
        }
    )
    local, far = reading.servers["local"], reading.servers["far"]
    assert local.argv == ("/bin/run", "--key=hub-key-value")
    assert dict(local.env) == {"TOKEN": "xhub-key-valuey", "NONE": ""}
    assert (far.url, dict(far.headers)) == (
        "https://example.test/hub-key-value",
        {"Authorization": "Bearer hub-key-value"},
    )
    assert (local.profile.kind, far.profile.kind) == ("external", "http")


@pytest.mark.req("EXT-02")
def test_an_unset_variable_disables_its_server_alone() -> None:
    reading = read({"a": {"command": "x", "env": {"K": "${NOT_SET}"}}, "b": {"command": "y"}})
    assert reading.servers["a"].problem == "a is disabled: the variable NOT_SET is not set."
    assert reading.servers["b"].problem is None


@pytest.mark.parametrize(
    ("name", "entry", "says"),
    [
        ("filer", {"command": "x"}, "built-in"),
        ("Filer", {"command": "x"}, "built-in"),
        ("no spaces", {"command": "x"}, "name"),
        ("../up", {"command": "x"}, "name"),
        ("both", {"command": "x", "url": "http://y"}, "either"),
        ("neither", {}, "either"),
        ("types", {"command": "x", "args": "not a list"}, "args"),
        ("types2", {"command": ["a"]}, "command"),
        ("late", {"command": "x", "timeout": -1}, "timeout"),
        ("scheme", {"url": "file:///etc/passwd"}, "url"),
        ("text", "just text", "dictionary"),
    ],
)
def test_a_bad_entry_is_dropped_alone_and_explained(name: str, entry: object, says: str) -> None:
    reading = read({name: entry, "good": {"command": "y"}})
    assert list(reading.servers) == ["good"]
    [mistake] = reading.mistakes
    assert name in mistake
    assert says in mistake


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": []}', "[" * 100_000])
def test_a_file_that_is_no_such_file_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableEntries):
        read_entries(text, HUB, frozenset(), 30)


@pytest.mark.req("EXT-05")
def test_both_directions_are_scanned_unless_the_user_says_less() -> None:
    reading = read(
        {
            "plain": {"command": "x"},
            "trusted": {
                "command": "x",
                "metadata": {"guardianScan": {"input": False}, "toolGroup": "Work", "label": "T"},
            },
        }
    )
    assert reading.servers["plain"].profile.scan == ScanDirections(input=True, output=True)
    assert reading.servers["trusted"].profile.scan == ScanDirections(input=False, output=True)
    assert reading.servers["plain"].profile.tag == "[Plain | External]"
    assert reading.servers["trusted"].profile.tag == "[T | Work]"


def test_timeouts_are_read_in_seconds_and_in_the_milliseconds_other_programs_write() -> None:
    reading = read(
        {"a": {"command": "x", "timeout": 45}, "b": {"command": "x", "timeout": 45000}, "c": {"command": "x"}}
    )
    assert [server.profile.timeout_seconds for server in reading.servers.values()] == [45, 45, 30]


def test_a_bad_timeout_in_the_environment_drops_its_server_alone() -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}})
    reading = read_entries(text, {"A_MCP_TIMEOUT": "soon"}, frozenset(), 30)
    assert list(reading.servers) == ["b"]
    assert "A_MCP_TIMEOUT" in reading.mistakes[0]


def test_a_disabled_entry_is_no_server() -> None:
    assert read({"a": {"command": "x", "disabled": True}}).servers == {}


def test_secrets_do_not_show_in_a_repr() -> None:
    assert "hub-key-value" not in repr(read({"a": {"command": "x", "args": ["${KEY}"], "env": {"A": "${KEY}"}}}))


@pytest.mark.req("EXT-05")
def test_a_server_is_vouched_for_only_where_its_entry_says_trusted() -> None:
    reading = read({"plain": {"command": "x"}, "crm": {"command": "x", "trusted": True}})
    assert not reading.servers["plain"].profile.vouched
    assert reading.servers["crm"].profile.vouched
