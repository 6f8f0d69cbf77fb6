"""Every tool has an example in the docs, and every example is true: it fits the schemas, and runs where it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from annabelle.core.home import Home
from annabelle.servers.kit.call import Call, enter_call
from servers.every_server import NAMES, build, manifest

Example = dict[str, Any]
SHOWN = [name for name in NAMES if manifest(name).get("role") != "guardian"]  # which has no tool for anybody


def examples_of(root: Path, name: str) -> dict[str, Example]:
    return json.loads((root / "docs" / "examples" / "tools" / f"{name}.json").read_text())


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize("name", SHOWN)
def test_every_tool_has_an_example_that_fits_its_schemas(home: Home, root: Path, name: str):
    tools = {tool.name: tool for tool in build(name).tools.values() if tool.audience != "hub"}
    examples = examples_of(root, name)
    assert set(examples) == set(tools)
    wrong: list[str] = []
    for tool_name, example in examples.items():
        tool = tools[tool_name]
        for part, schema in (("arguments", tool.input_schema()), ("answer", tool.output_schema())):
            problem = next(jsonschema.Draft202012Validator(schema).iter_errors(example[part]), None)
            if problem is not None:
                wrong.append(f"{tool_name}: {part}: {problem.message[:200]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize("name", SHOWN)
async def test_an_example_that_needs_nobody_else_runs_and_answers_as_the_docs_say(
    home: Home, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMORY_BACKUP_HOURS", "0")  # whether one is made meanwhile would be luck
    runs = {tool: example for tool, example in examples_of(root, name).items() if example.get("runs")}
    server = build(name)
    enter_call(Call(agent_id="annabelle", user_id="owner", caller="api", trust="trusted"))
    try:
        for tool, example in runs.items():  # in the order they are written: the first makes what the next one reads
            answer = json.loads((await server.tools[tool].call(example["arguments"])).model_dump_json())
            assert _shape(answer) == _shape(example["answer"]), tool
    finally:
        await server.close()


def _shape(value: object) -> object:
    """What does not change with the day: which fields there are and what kind of thing stands in them."""
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
