"""What people read of a tool's result: words, without ids and without the names of tools (FST-05)."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from pydantic import BaseModel

from annabelle.core.result_text import describe, for_model, make_result, read_on, render_for_person
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import Result
from annabelle.servers.kit.server import MAX_RESULT_BYTES
from annabelle.servers.kit.tools import success
from annabelle.toolbox.mcp.conversion import to_result
from annabelle.toolbox.mcp.rpc import RpcAnswer
from servers.every_server import NAMES, build
from toolbox.test_convert import TOOL

pytestmark = pytest.mark.req("FST-05")

ID = "zq81-canary-id"
NUMBER = 987_651_234
INNER = re.compile(r"(?:.*_)?(?:id|ids|token|cursor|next_page|next_offset)")
# Handles of secrets are what the tool is asked for; the scanner's verdict is read by the hub.
FOR_MACHINES = ("get_secret", "read_secret", "reveal_secret", "scan_content", "get_scan_log", "readiness")


def sample(schema: JsonObject, definitions: JsonObject, name: str = "") -> Any:
    """A value that fits the schema; whatever is an id is one that can be found again."""
    if "$ref" in schema:
        schema = cast("JsonObject", definitions[str(schema["$ref"]).rpartition("/")[2]])
    options = cast("list[JsonObject]", schema.get("anyOf") or [])
    if options:
        return sample(next(one for one in options if one.get("type") != "null"), definitions, name)
    if "enum" in schema or "const" in schema:
        return cast("list[Any]", schema.get("enum") or [schema.get("const")])[0]
    inner = INNER.fullmatch(name) is not None
    match schema.get("type"):
        case "object":
            properties = cast("dict[str, JsonObject]", schema.get("properties") or {})
            return {key: sample(value, definitions, key) for key, value in properties.items()}
        case "array":
            return [sample(cast("JsonObject", schema.get("items") or {"type": "string"}), definitions, name)]
        case "integer" | "number":
            return NUMBER if inner else cast("int", schema.get("minimum", 3))
        case "boolean":
            return True
        case _:
            times = {"date-time": "2026-03-04T05:06:07+00:00", "date": "2026-03-04"}
            return times.get(str(schema.get("format")), ID if inner else "2026-03-04T05:06:07+00:00")


def sample_result(model: type[BaseModel]) -> Result:
    schema = model.model_json_schema(mode="validation")
    return cast("Result", model.model_validate(sample(schema, cast("JsonObject", schema.get("$defs") or {}))))


@pytest.mark.parametrize("name", NAMES)
def test_no_result_shows_a_person_ids_json_or_arguments(name: str, home: object) -> None:
    shown = {
        tool.name: render_for_person(sample_result(tool.result).to_text)
        for tool in build(name).tools.values()
        if tool.audience != "hub" and tool.name not in FOR_MACHINES
    }
    wrong = {
        called: said
        for called, said in shown.items()
        if not said.strip() or ID in said or str(NUMBER) in said or said.startswith("{") or "_" in said
    }
    assert wrong == {}


def test_a_result_goes_out_for_both_only_where_they_differ() -> None:
    class Plain(Result):
        def to_text(self) -> str:
            return "Done."

    class Numbered(Result):
        id: str = "n-1"

        def to_text(self) -> str:
            return f"Done{for_model(f' ({self.id})')}."

    assert [block.text for block in success(Plain(), MAX_RESULT_BYTES).content] == ["Done."]
    both = success(Numbered(), MAX_RESULT_BYTES)
    assert [(block.text, block.annotations.audience) for block in both.content] == [
        ("Done (n-1).", ["assistant"]),
        ("Done.", ["user"]),
    ]
    answer = RpcAnswer(both.model_dump(mode="json", by_alias=True, exclude_none=True), 100)
    ours = to_result(answer, TOOL, 1000, ours=True)
    assert (ours.text, ours.display) == ("Done (n-1).", "Done.")
    foreign = to_result(answer, TOOL, 1000)
    assert (foreign.text, foreign.display) == ("Done (n-1).\nDone.", None), "others can not hide words from the model"


def test_a_structure_is_told_in_lines() -> None:
    said = describe(
        {
            "id": 7,
            "title": "Trip",
            "last_run": "2026-03-04T05:06:07.123Z",
            "shared": True,
            "hidden": False,
            "note": None,
            "tags": ["a", "b"],
            "files": [{"name": "x.pdf", "size": 3, "file_id": "f1"}, {"name": "y.pdf", "size": 4, "locked": True}],
            "drafts": [],
        }
    )
    assert said == (
        "Title: Trip\nLast run: 2026-03-04 05:06\nShared.\nTags: a, b\n"
        "Files:\n- x.pdf (size 3)\n- y.pdf (size 4, locked yes)\nNo drafts."
    )


def test_a_part_of_a_list_says_so_in_the_readers_terms() -> None:
    result = make_result(lambda: read_on("[more: page_token 20]"))
    assert result.text == "[more: page_token 20]"
    assert result.display == "There is more. Ask for something narrower to see it."


def test_an_exception_while_rendering_leaves_the_model_its_words() -> None:
    with pytest.raises(ZeroDivisionError):
        render_for_person(lambda: str(1 / 0))
    assert for_model("id") == "id"
