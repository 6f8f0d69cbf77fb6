"""Every tool of ours was looked at: what it can do at worst, and what its arguments mean."""

from __future__ import annotations

from typing import cast, get_args

import pytest

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Source, ToolClass
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.tool_traits import ToolTraits, guess_traits, reviewed_tools
from annabelle.policy.vocabulary import mentions_any
from policy.house import foreign_tool
from servers.every_server import NAMES, build, manifest

_ROLES = (
    "to", "of", "paths", "files", "urls", "queries", "code", "values", "payload", "refs", "typed", "everyone",
    "replaces", "given", "harmless", "ruinous",
)  # fmt: skip


@pytest.fixture(scope="module")
def parameters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The tools agents may call, by name, with their parameters."""
    found: dict[str, set[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANNABELLE_HOME", str(tmp_path_factory.mktemp("home")))
        for server in NAMES:
            if server != "guardian":
                for tool in build(server).tools.values():
                    if tool.audience == "everyone":
                        found[f"{manifest(server)['name']}_{tool.name}"] = set(
                            cast("JsonObject", tool.input_schema().get("properties", {}))
                        )
    return found


@pytest.mark.req("POL-04")
def test_every_tool_of_every_server_is_in_the_table_and_no_other(parameters: dict[str, set[str]]) -> None:
    servers = tuple(f"{manifest(name)['name']}_" for name in NAMES)
    natives = {"memory_synthesize_facts", "memory_backfill_extract_facts"}
    natives |= {f"memory_{verb}_skill" for verb in ("store", "get", "update", "delete")} | {"memory_list_skills"}
    listed = {name for name in reviewed_tools() if name.startswith(servers)} - natives
    assert listed == set(parameters)


@pytest.mark.req("POL-04")
def test_the_arguments_in_the_table_are_the_tools_own(parameters: dict[str, set[str]]) -> None:
    for name, own in parameters.items():
        traits = reviewed_tools()[name]
        named = {argument for role in _ROLES for argument in getattr(traits, role)}
        assert named <= own, name


@pytest.mark.req("POL-04")
def test_the_words_of_the_table_are_known() -> None:
    for name, traits in reviewed_tools().items():
        given = (one for classes in traits.given.values() for one in classes)
        assert {*traits.classes, *given} <= set(get_args(ToolClass)), name
        assert {*traits.wants, *traits.enough} <= set(get_args(ActionKind)), name
        assert traits.source in get_args(Source), name
        assert not mentions_any("", traits.about)  # an unknown noun raises


@pytest.mark.req("POL-04", "POL-02")
@pytest.mark.parametrize(
    ("tool", "arguments", "worst"),
    [
        ("gmail_create_event", {"summary": "x"}, "write_inside"),
        ("gmail_create_event", {"summary": "x", "attendees": ["a@b.example"]}, "send_outside"),
        ("gmail_update_event", {"event_id": "x", "response_status": "accepted"}, "send_outside"),
        ("gmail_modify_labels", {"message_id": "x", "add_label_ids": ["Trash"]}, "destroy"),
        ("telegram_subscribe_chat", {"action": "subscribe", "chat_id": "1"}, "control"),
        ("telegram_subscribe_chat", {"action": "list"}, "read_untrusted"),
        ("web_browser_snapshot", {"filename": "x"}, "write_inside"),
        ("gmail_create_filter", {"criteria": {}, "action": {}}, "control"),
        ("memory_update_profile", {"updates": {}}, "control"),
        ("codexec_install_package", {"language": "python", "package": "x"}, "execute"),
        ("onepassword_read_secret", {"reference": "op://a/b/c"}, "read_private"),
    ],
)
def test_what_a_call_can_do_follows_from_its_arguments(tool: str, arguments: JsonObject, worst: ToolClass) -> None:
    assert worst in reviewed_tools()[tool].classes_of(arguments)


def guess(name: str, *arguments: str, **hints: bool) -> ToolTraits:
    return guess_traits(foreign_tool(name, dict.fromkeys(arguments, ""), **hints))


@pytest.mark.req("POL-02", "POL-04")
def test_a_tool_that_nobody_reviewed_is_taken_for_the_worst_its_server_does_not_deny() -> None:
    assert guess("x_frobnicate").classes == ("send_outside", "destroy")
    assert "destroy" in guess("x_delete_row", destructive=False, open_world=False).classes
    assert "send_outside" in guess("x_sendInvoice", destructive=False, open_world=False).classes
    assert "execute" in guess("x_run_shell", destructive=False).classes
    assert "control" in guess("x_set_webhook", destructive=False).classes
    assert guess("x_note", destructive=False, open_world=False).classes == ("write_inside",)


@pytest.mark.req("POL-04")
def test_a_tool_that_says_it_only_reads_still_has_a_way_out_and_can_not_send() -> None:
    reads = guess("x_lookup", "url", "q", read_only=True)
    assert (reads.classes, reads.urls, reads.queries) == (("read_untrusted",), ("url",), ("q",))
    assert "send_outside" in guess("x_send_money", "to", read_only=True).classes


@pytest.mark.req("POL-04")
def test_what_the_arguments_of_an_unknown_tool_mean_is_read_from_their_names() -> None:
    traits = guess("x_send", "toAddress", "recipients", "body", "file_path", "endpoint", "ticket")
    assert (traits.to, traits.payload, traits.files) == (("toAddress", "recipients"), ("body",), ("file_path",))
    assert (traits.urls, traits.of) == (("endpoint",), ("ticket",))
