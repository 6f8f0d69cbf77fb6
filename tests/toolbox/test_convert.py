"""From what a server says to what we read."""

import pytest

from annabelle.core.tools import JsonObject, ToolAnnotations, ToolSpec
from annabelle.toolbox.manifest import ServerProfile
from annabelle.toolbox.mcp.conversion import to_result, to_spec
from annabelle.toolbox.mcp.rpc import RpcAnswer

TOOL = ToolSpec(name="s_t", server="s", original_name="t", description="", input_schema={})
SERVER = ServerProfile("s", "S", "external", 30)


def said(*content: JsonObject, size: int = 100, **more: object) -> RpcAnswer:
    return RpcAnswer({"content": list(content), **more}, size)


def test_text_blocks_are_joined_and_others_are_named() -> None:
    result = to_result(
        said(
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "name": "doc", "uri": "file:///doc"},
            {"type": "resource", "resource": {"uri": "x", "text": "inside"}},
        ),
        TOOL,
        1000,
    )
    assert result.text == "one\n[image, image/png, 3 bytes]\n[doc: file:///doc]\ninside"


def test_structure_without_text_is_shown_as_json() -> None:
    assert to_result(said(structuredContent={"a": 1}), TOOL, 1000).text == '{"a": 1}'


def test_a_long_text_is_cut_at_a_character_with_a_note() -> None:
    result = to_result(said({"type": "text", "text": "ä" * 1000}, size=2100), TOOL, 101)
    shown, note = result.text.split("\n", 1)
    assert shown == "ä" * 50
    assert "2000 bytes" in note


def test_a_structure_that_is_too_large_is_left_out() -> None:
    big = said({"type": "text", "text": "short"}, size=5000, structuredContent={"a": "x" * 4900})
    result = to_result(big, TOOL, 1000)
    assert (result.text, result.structured) == ("short", None)


@pytest.mark.parametrize(
    ("structured", "code"),
    [({"error": {"code": "not_found", "message": "No.", "hint": "Look."}}, "not_found"), (None, "tool_failed")],
)
def test_a_failure_keeps_what_the_server_says_about_it(structured: JsonObject | None, code: str) -> None:
    result = to_result(said({"type": "text", "text": "No."}, isError=True, structuredContent=structured), TOOL, 1000)
    assert result.is_error
    assert result.error is not None
    assert (result.error.code, result.error.message) == (code, "No.")


def test_a_server_that_asks_for_input_is_told_no() -> None:
    assert to_result(said(resultType="input_required"), TOOL, 1000).is_error


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (None, ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=True)),
        ({"readOnlyHint": "yes"}, ToolAnnotations()),
        (
            {"readOnlyHint": True, "openWorldHint": False},
            ToolAnnotations(read_only=True, destructive=False, open_world=False),
        ),
        ({"destructiveHint": False, "idempotentHint": True}, ToolAnnotations(destructive=False, idempotent=True)),
    ],
)
def test_an_absent_hint_is_read_as_the_dangerous_answer(hints: object, expected: ToolAnnotations) -> None:
    spec = to_spec(SERVER, {"name": "t", "annotations": hints})
    assert spec is not None
    assert spec.annotations == expected


OURS = ServerProfile("s", "S", "builtin", 30, provenance=True)


@pytest.mark.parametrize(
    ("meta", "audience"),
    [
        (None, "everyone"),
        ({"annabelle": {"audience": "people"}}, "people"),
        ({"annabelle": {"audience": "hub"}}, "hub"),
        ({"annabelle": {"audience": "somebody"}}, "hub"),
        ({"annabelle": "people"}, "everyone"),
        ({"other": {"audience": "hub"}}, "everyone"),
    ],
)
def test_our_servers_say_for_whom_a_tool_is_and_others_are_not_heard(meta: object, audience: str) -> None:
    ours, theirs = to_spec(OURS, {"name": "t", "_meta": meta}), to_spec(SERVER, {"name": "t", "_meta": meta})
    assert ours is not None
    assert theirs is not None
    assert (ours.audience, theirs.audience) == (audience, "everyone")


@pytest.mark.req("MEM-09")
@pytest.mark.parametrize(
    ("structured", "trust"),
    [
        ({"trust": "trusted"}, "trusted"),
        ({"trust": "untrusted"}, "untrusted"),
        ({"trust": 1}, "untrusted"),
        ({}, "untrusted"),
    ],
)
def test_only_a_server_that_labels_its_results_is_heard_on_how_far_to_trust_them(
    structured: JsonObject, trust: str
) -> None:
    answer = said({"type": "text", "text": "x"}, structuredContent=structured)
    assert to_result(answer, TOOL, 1000, labelled=True).trust == trust
    assert to_result(answer, TOOL, 1000).trust == "untrusted"


def test_a_label_holds_when_the_structure_is_too_large_to_pass_on() -> None:
    big = said({"type": "text", "text": "short"}, size=5000, structuredContent={"a": "x" * 4900, "trust": "trusted"})
    result = to_result(big, TOOL, 1000, labelled=True)
    assert (result.structured, result.trust) == (None, "trusted")


@pytest.mark.parametrize("listed", [{}, {"name": 3}, {"name": ""}])
def test_an_entry_without_a_name_is_no_tool(listed: JsonObject) -> None:
    assert to_spec(SERVER, listed) is None
