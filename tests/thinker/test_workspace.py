"""The workspace of a thread: shown once and fresh with every request, kept over turns, never history."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from annabelle.core.contract import ThinkingSettings, ToolCall
from annabelle.core.errors import HubUnreachable, InvalidArguments
from annabelle.core.tools import ToolResult
from annabelle.thinker.compression.context_compressor import ContextCompressor
from annabelle.thinker.compression.message_text import render_messages
from annabelle.thinker.compression.workspace import (
    MAX_TOKENS,
    ThreadWorkspace,
    UpdateWorkspace,
    WorkspaceChange,
    Workspaces,
    WorkspaceState,
    WorkspaceTask,
    apply_change,
)
from annabelle.thinker.prompt.prompt import build_section
from annabelle.thinker.prompt.token_budget import WORKSPACE_TOKENS, count_tokens
from support.timing import seconds
from thinker.fakes import Bench, DictTools, ListedModel
from thinker.thinkers import brief

lines = st.text(min_size=1, max_size=20)


class Files:
    """Files to read, and how often they were."""

    def __init__(self, **files: str) -> None:
        self.files, self.reads = files, 0

    async def read(self, path: str) -> ToolResult:
        self.reads += 1
        if path not in self.files:
            raise HubUnreachable("No hub.")
        return ToolResult(text=self.files[path])

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        assert (call.name, call.call_id) == ("filer_read_file", None)
        return await self.read(str(call.arguments["path"]))


async def opened(folder: Path, files: Files | None = None) -> ThreadWorkspace:
    return await ThreadWorkspace.open(folder, "thr_1", (files or Files()).read)


@pytest.mark.req("CMP-01")
async def test_it_shows_files_notes_tasks_and_what_was_seen_last(tmp_path: Path):
    workspace = await opened(tmp_path, Files(plan="Step one."))
    result = await UpdateWorkspace(workspace).call(
        {"open_files": ["plan"], "add_notes": ["It rains."], "add_tasks": ["read", "write"], "done_tasks": ["read"]}
    )
    assert result.text == "1 files open, 1 notes, 1 of 2 tasks to do."
    workspace.observe("look_up", ToolResult(text="found   it"))
    text = await workspace.render()
    for line in ("File plan:", "Step one.", "- It rains.", "[x] read", "[ ] write", "- look_up ok: found it"):
        assert line in text.splitlines()


@pytest.mark.req("CMP-01")
async def test_it_outlives_the_process_but_not_its_thread(tmp_path: Path):
    await UpdateWorkspace(await opened(tmp_path)).call({"add_notes": ["Remember me."]})
    assert "Remember me." in await (await opened(tmp_path)).render()
    other = await ThreadWorkspace.open(tmp_path, "thr_2", Files().read)
    assert await other.render() == ""


@pytest.mark.req("CMP-01")
async def test_an_open_file_is_shown_as_it_is_now(tmp_path: Path):
    files = Files(plan="old")
    workspace = await opened(tmp_path, files)
    await UpdateWorkspace(workspace).call({"open_files": ["plan", "gone"]})
    text = await workspace.render()
    assert "old" in text
    assert "(can not be read: No hub.)" in text
    reads = files.reads
    await workspace.render()
    assert files.reads == reads
    files.files["plan"] = "new"
    workspace.observe("filer_write_file", ToolResult(text="written"))
    assert "new" in await workspace.render()


@pytest.mark.req("CMP-01")
async def test_large_files_share_the_room_there_is(tmp_path: Path):
    files = Files(a="a " * 20_000, b="short", c="ц" * 20_000)
    workspace = await opened(tmp_path, files)
    await UpdateWorkspace(workspace).call({"open_files": ["a", "b", "c"], "add_notes": ["n" * 400] * 1})
    text = await workspace.render()
    assert MAX_TOKENS * 0.9 < count_tokens(text) <= 5_000
    assert "short" in text.splitlines()
    assert "n" * 400 in text


@pytest.mark.req("CMP-01")
@pytest.mark.parametrize("damage", [b"", b"{", b'{"notes": 5}', b"\xff\xfe", b'{"open_files": ["' + b"x" * 10 + b'"]'])
async def test_a_damaged_file_is_an_empty_desk(tmp_path: Path, damage: bytes):
    (tmp_path / "thr_1.json").write_bytes(damage)
    workspace = await opened(tmp_path)
    assert workspace.state == WorkspaceState()
    await UpdateWorkspace(workspace).call({"add_notes": ["works"]})
    assert "works" in await (await opened(tmp_path)).render()


async def test_a_wrong_change_changes_nothing_and_says_what_is_wrong(tmp_path: Path):
    workspace = await opened(tmp_path)
    tool = UpdateWorkspace(workspace)
    for arguments in ({"notes": ["x"]}, {"add_notes": "x"}, {"add_notes": [""]}, {"done_tasks": ["unknown"]},
                      {"open_files": [f"f{n}" for n in range(11)]}, {"add_tasks": ["t" * 501]}):  # fmt: skip
        result = await tool.call(dict(arguments))
        assert result.is_error
        assert result.error is not None
        assert result.error.code == "invalid_arguments"
    assert workspace.state == WorkspaceState()
    assert (await opened(tmp_path)).state == WorkspaceState()


@given(st.data())
def test_a_change_made_twice_is_the_same_as_once(data: st.DataObject):
    many = st.lists(lines, max_size=4).map(tuple)
    tasks = data.draw(many)
    first = tasks[0] if tasks else ""
    steps = tuple(text for text in data.draw(many) if text not in tasks)
    desk = WorkspaceState(
        open_files=data.draw(many),
        notes=data.draw(many),
        tasks=(
            *(WorkspaceTask(text=text) for text in dict.fromkeys(tasks)),
            *(WorkspaceTask(text=text, step_of=first) for text in dict.fromkeys(steps) if first),
        ),
    )
    wanted = WorkspaceChange(
        objective=data.draw(st.none() | lines),
        steps_of=data.draw(st.sampled_from(["", first, *tasks, *steps])),
        open_files=data.draw(many),
        add_notes=data.draw(many),
        remove_notes=data.draw(many),
        add_tasks=data.draw(many),
        remove_tasks=data.draw(many | st.sampled_from([tasks[:1], steps[:1]])),
        done_tasks=data.draw(st.sampled_from([(), tasks[:1], steps[:1]])),
    )
    try:
        once = apply_change(desk, wanted)
    except (InvalidArguments, ValidationError):
        return
    assert apply_change(once, wanted) == once


@pytest.mark.req("CMP-01")
async def test_tasks_have_a_workspace_and_conversations_only_if_wanted(tmp_path: Path):
    plain = Workspaces(tmp_path, ThinkingSettings(), Files())
    wanted = Workspaces(tmp_path, ThinkingSettings(workspace=True), Files())
    assert await plain.open(brief("x", conversational=True)) is None
    assert await plain.open(brief("x", conversational=False)) is not None
    assert await wanted.open(brief("x", conversational=True)) is not None
    assert await wanted.open(brief("x", thread_id="../../etc")) is None


@pytest.mark.req("CMP-01")
async def test_ten_steps_send_the_workspace_once_each_and_history_has_none(tmp_path: Path):
    big = "The long plan of this task. " * 2_000
    plan: list[Any] = [[("look_up", {"page": n})] for n in range(9)]
    tools = DictTools(look_up=lambda arguments: f"found {arguments}", filer_read_file=lambda _: big)
    first: list[Any] = [[("update_workspace", {"open_files": ["plan.md"], "add_tasks": ["finish"]})]]
    bench = Bench(tmp_path, ListedModel(*first, *plan, "Done."), tools, max_steps=12, same_tool_with_news=20)
    bench.parts = replace(bench.parts, workspaces=Workspaces(tmp_path, ThinkingSettings(), tools))
    result = await bench.run("do it", conversational=False)
    assert result.text == "Done."
    requests = [render_messages(request.messages) for request in bench.model.requests]
    assert len(requests) == 11
    for text in requests[1:]:
        assert text.count("<workspace>\n") == 1
        shown = text.split("<workspace>\n")[1].split("</workspace>")[0]
        assert 4_500 < count_tokens(shown) <= 5_000
        assert "The long plan" not in text.replace(shown, "")
    assert "- look_up ok: found {'page': 8}" in requests[-1].splitlines(), "what was seen last"
    record = (await bench.sessions.turns(brief("x").thread_id))[-1]
    assert "The long plan" not in str(record.messages)
    again = Bench(tmp_path, ListedModel("Yes."), tools)
    again.parts = replace(again.parts, workspaces=Workspaces(tmp_path, ThinkingSettings(), tools))
    await again.run("and now?", conversational=False)
    assert "[ ] finish" in render_messages(again.sent())


@pytest.mark.req("LOOP-09")
async def test_a_stop_ends_the_reading_of_open_files(tmp_path: Path):
    begun = asyncio.Event()

    async def slow(arguments: dict[str, Any]) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    tools = DictTools(filer_read_file=slow)
    bench = Bench(tmp_path, ListedModel([("update_workspace", {"open_files": ["plan.md"]})], "never"), tools)
    bench.parts = replace(bench.parts, workspaces=Workspaces(tmp_path, ThinkingSettings(), tools))
    turn = asyncio.create_task(bench.run("go", conversational=False))
    await asyncio.wait_for(begun.wait(), seconds(5))
    bench.live.cancel()
    result = await asyncio.wait_for(turn, seconds(5))
    assert result.error is not None
    assert result.error.code == "cancelled"


@pytest.mark.req("CMP-11")
async def test_an_objective_is_split_into_tasks_and_a_task_into_steps_when_it_is_begun(tmp_path: Path):
    tool = UpdateWorkspace(await opened(tmp_path))
    await tool.call({"objective": "Move house", "add_tasks": ["find a flat", "book a van"]})
    await tool.call({"add_tasks": ["read adverts", "visit three"], "steps_of": "find a flat"})
    await tool.call({"done_tasks": ["read adverts"]})
    text = await (await opened(tmp_path)).render()
    assert text.splitlines() == [
        "Objective: Move house", "Tasks:", "[ ] find a flat", "  [x] read adverts", "  [ ] visit three",
        "[ ] book a van", "Next: visit three",
    ]  # fmt: skip


@pytest.mark.req("CMP-11")
async def test_what_is_next_is_the_first_step_then_its_task_then_the_task_after_it(tmp_path: Path):
    workspace = await opened(tmp_path)
    tool = UpdateWorkspace(workspace)
    await tool.call({"add_tasks": ["a", "b"]})
    await tool.call({"add_tasks": ["a1"], "steps_of": "a"})
    order: list[str] = []
    while left := workspace.state.open_tasks():
        order.append(left[0])
        await tool.call({"done_tasks": [left[0]]})
    assert order == ["a1", "a", "b"]
    assert "Next" not in await workspace.render()


@pytest.mark.req("CMP-11")
async def test_a_task_is_done_and_dropped_with_its_steps(tmp_path: Path):
    workspace = await opened(tmp_path)
    tool = UpdateWorkspace(workspace)
    await tool.call({"add_tasks": ["a", "b"]})
    await tool.call({"add_tasks": ["a1", "a2"], "steps_of": "a"})
    await tool.call({"done_tasks": ["a"]})
    assert workspace.state.open_tasks() == ("b",)
    await tool.call({"remove_tasks": ["a"]})
    assert [task.text for task in workspace.state.tasks] == ["b"]


@pytest.mark.req("CMP-11")
@pytest.mark.parametrize("steps_of", ["unknown", "a1", "old", "b"])
async def test_steps_of_what_takes_none_change_nothing_and_say_why(tmp_path: Path, steps_of: str):
    workspace = await opened(tmp_path)
    tool = UpdateWorkspace(workspace)
    await tool.call({"add_tasks": ["a", "old"], "done_tasks": ["old"]})
    await tool.call({"add_tasks": ["a1"], "steps_of": "a"})
    before = workspace.state
    result = await tool.call({"add_tasks": ["b"], "steps_of": steps_of})
    assert result.is_error
    assert steps_of in result.text
    assert workspace.state == before


@pytest.mark.req("CMP-11")
async def test_a_plan_that_could_not_be_shown_whole_is_refused_and_nothing_is_lost(tmp_path: Path):
    workspace = await opened(tmp_path)
    tool = UpdateWorkspace(workspace)
    await tool.call({"objective": "o" * 500, "add_tasks": [f"{n} " + "t" * 490 for n in range(20)]})
    before = workspace.state
    result = await tool.call({"add_notes": [f"{n} " + "n" * 490 for n in range(5)]})
    assert result.is_error
    assert "room for 3000 tokens" in result.text
    assert workspace.state == before


@pytest.mark.req("CMP-11")
async def test_open_files_and_observations_leave_the_plan_whole(tmp_path: Path):
    files = Files(**{f"f{n}": "<workspace> " * 5_000 for n in range(10)})
    workspace = await opened(tmp_path, files)
    tasks = [f"task {n} {'t' * 200}" for n in range(50)]
    await UpdateWorkspace(workspace).call({"objective": "Read all", "add_tasks": tasks, "open_files": [*files.files]})
    for number in range(10):
        workspace.observe("look_up", ToolResult(text=f"result {number} " + "r" * 300))
    text = await workspace.render()
    assert count_tokens(text) <= WORKSPACE_TOKENS
    # The tags in the files are escaped and take more room: what is cut then is at the end.
    shown = build_section("workspace", text, WORKSPACE_TOKENS).text.splitlines()
    assert "Objective: Read all" in shown
    assert [line for line in shown if line.startswith("[ ] task")] == [f"[ ] {task}" for task in tasks]


@pytest.mark.req("CMP-11", "CMP-07")
async def test_compression_keeps_the_long_term_level_whole_and_only_the_end_of_the_short_term_one(tmp_path: Path):
    steps = [f"read part {n}" for n in range(12)]
    plan: list[Any] = [[("update_workspace", {"objective": "Find the code word", "add_tasks": steps})]]
    for n, step in enumerate(steps):
        plan += [
            [("look_up", {"page": n})],
            [("update_workspace", {"done_tasks": [step], "add_notes": [f"part {n}: k{n}"]})],
        ]
    tools = DictTools(look_up=lambda given: f"page {given['page']} " + "words and words " * 200)
    bench = Bench(tmp_path, ListedModel(*plan, "Done."), tools, max_steps=40, same_tool_with_news=50)
    thinking = ThinkingSettings(threshold_tokens=1_500)
    bench.parts = replace(
        bench.parts, workspaces=Workspaces(tmp_path, thinking, tools), compressor=ContextCompressor(thinking)
    )
    result = await bench.run("read the book", conversational=False)
    assert result.text == "Done."
    last = render_messages(bench.sent())
    shown = last.split("<workspace>\n")[1].split("</workspace>")[0]
    assert "page 0 words and words words and words" not in last, "it was compressed"
    assert "Objective: Find the code word" in shown
    assert [line for line in shown.splitlines() if line.startswith("[x]")] == [f"[x] {step}" for step in steps]
    assert all(f"- part {n}: k{n}\n" in shown for n in range(12))
    assert "look_up ok: page 11" in shown
    assert "look_up ok: page 0 " not in shown
