"""The library of scripts."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from annabelle.core.errors import InvalidArguments, NotFound, StorageTrouble
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.script_library import Script
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-EXE")


async def test_a_script_is_kept_and_shown_as_it_was_written(call: CallTool) -> None:
    code = "print('grüße')\n# ☃\n"
    saved = await call(
        "save_script", name="Grüße 1", description="Says hello", language="python", code=code, tags=["b", "a", "a", " "]
    )
    script = await call("get_script", name="grüße 1")
    assert saved.outcome == "created"
    assert (script.name, script.code, script.language, script.tags) == ("Grüße 1", code, "python", ["a", "b"])
    assert (script.runs, script.last_run) == (0, None)


async def test_the_end_of_very_long_code_is_in_a_file(call: CallTool, workspace: Path) -> None:
    code = "#" * 150_000 + "\nprint('end')"
    await call("save_script", name="long", description="", language="python", code=code)
    script = await call("get_script", name="long")
    assert len(script.code) == 100_000
    assert (workspace / script.rest).read_text() == code


async def test_arguments_reach_the_script_and_runs_are_counted(call: CallTool) -> None:
    for language, code in (
        ("python", "import sys\nprint(sys.argv[1:])"),
        ("node", "console.log(JSON.stringify(process.argv.slice(2)))"),
        ("bash", 'printf "[%s]" "$@"'),
    ):
        await call("save_script", name=language, description="", language=language, code=code)
    python = await call("run_script", name="python", args=["a b", "ü", ""])
    node = await call("run_script", name="node", args=["a b", "--eval=1"])
    bash = await call("run_script", name="bash", args=["*", "$HOME"])
    assert python.stdout == "['a b', 'ü', '']\n"
    assert json.loads(node.stdout) == ["a b", "--eval=1"]
    assert bash.stdout == "[*][$HOME]"
    await asyncio.gather(*(call("run_script", name="bash") for _ in range(3)))
    script = await call("get_script", name="bash")
    assert (script.runs, script.last_exit_code) == (4, 0)
    assert script.last_run


async def test_saving_again_replaces_and_keeps_the_old_version(call: CallTool, workspace: Path) -> None:
    await call("save_script", name="a", description="", language="bash", code="echo one")
    await call("run_script", name="a")
    same = await call("save_script", name="A", description="", language="bash", code="echo one")
    other = await call("save_script", name="a", description="", language="bash", code="echo two")
    assert (same.outcome, other.outcome) == ("unchanged", "replaced")
    assert json.loads((workspace / other.backup).read_text())["code"] == "echo one"
    assert (await call("run_script", name="a")).stdout == "two\n"
    assert (await call("get_script", name="a")).runs == 2


async def test_saving_and_running_in_one_call(call: CallTool) -> None:
    report = await call(
        "save_and_run_script",
        name="sum",
        description="Adds up",
        language="python",
        code="import sys\nprint(sum(map(int, sys.argv[1:])))\nsys.exit(5)",
        args=["1", "2"],
    )
    assert (report.name, report.saved, report.stdout, report.exit_code) == ("sum", "created", "3\n", 5)
    assert (await call("get_script", name="sum")).last_exit_code == 5


async def test_a_wrong_argument_keeps_it_from_being_saved(call: CallTool) -> None:
    script = {"name": "a", "description": "", "language": "bash", "code": "true"}
    for wrong in ({"args": ["a\x00b"]}, {"timeout_ms": 10_000_000}, {"packages": ["x"]}):
        with pytest.raises(InvalidArguments):
            await call("save_and_run_script", **{**script, **wrong})
    assert (await call("list_scripts")).total == 0


async def test_a_script_works_in_a_folder_of_the_workspace(call: CallTool, workspace: Path) -> None:
    (workspace / "Data").mkdir(parents=True)
    await call("save_script", name="a", description="", language="bash", code="echo x > made.txt")
    report = await call("run_script", name="a", working_dir="Data")
    assert report.artifacts == ["Data/made.txt"]
    assert (workspace / "Data/made.txt").read_text() == "x\n"


async def test_scripts_are_listed_and_narrowed_down(call: CallTool) -> None:
    for name, language, tags in (("b", "python", ["Money"]), ("a", "bash", []), ("c", "python", [])):
        await call("save_script", name=name, description="", language=language, code="", tags=tags)
    listed = await call("list_scripts")
    assert [script.name for script in listed.scripts] == ["a", "b", "c"]
    assert [script.name for script in (await call("list_scripts", language="python")).scripts] == ["b", "c"]
    assert [script.name for script in (await call("list_scripts", tag="money")).scripts] == ["b"]


async def test_a_long_list_comes_in_pages(call: CallTool) -> None:
    for number in range(55):
        await call("save_script", name=f"s{number:02}", description="", language="bash", code="")
    first = await call("list_scripts")
    second = await call("list_scripts", page_token=first.next_page)
    assert (len(first.scripts), len(second.scripts), first.total) == (50, 5, 55)
    assert second.next_page is None


async def test_scripts_are_found_by_their_words(call: CallTool) -> None:
    await call("save_script", name="invoices", description="Sums up", language="python", code="total = 0")
    await call("save_script", name="other", description="About invoices", language="python", code="x", tags=["money"])
    await call("save_script", name="third", description="", language="bash", code="grep total *.csv")
    best = [script.name for script in (await call("search_scripts", query="Invoices")).scripts]
    assert best == ["invoices", "other"]
    assert [script.name for script in (await call("search_scripts", query="total csv")).scripts] == ["third"]
    assert [script.name for script in (await call("search_scripts", query="money")).scripts] == ["other"]
    assert (await call("search_scripts", query="nothing like it")).scripts == []


async def test_a_deleted_script_can_be_brought_back(call: CallTool, workspace: Path) -> None:
    await call("save_script", name="a", description="d", language="bash", code="echo back", tags=["t"])
    deleted = await call("delete_script", name="a")
    with pytest.raises(NotFound):
        await call("get_script", name="a")
    with pytest.raises(NotFound):
        await call("delete_script", name="a")
    kept = json.loads((workspace / deleted.backup).read_text())
    fields = ("name", "description", "language", "code", "tags")
    await call("save_script", **{field: kept[field] for field in fields})
    assert (await call("run_script", name="a")).stdout == "back\n"
    assert deleted.backup in deleted.to_text()


@pytest.mark.parametrize(
    "name", ["", " ", "../a", "a/b", "a\\b", ".hidden", "a\x00b", "a\nb", "x" * 151, "end.", "$(touch x)", "a:b", "-rf"]
)
async def test_a_name_that_is_no_file_name_is_refused(call: CallTool, name: str) -> None:
    with pytest.raises(InvalidArguments, match="name"):
        await call("save_script", name=name, description="", language="bash", code="true")


async def test_a_torn_file_is_named_and_can_be_mended(call: CallTool, code_config: CodeConfig) -> None:
    await call("save_script", name="a", description="", language="bash", code="echo fine")
    file = code_config.data / "scripts" / "a.json"
    file.write_text(file.read_text()[:40])
    await call("save_script", name="b", description="", language="bash", code="true")
    listed = await call("list_scripts")
    assert ([script.name for script in listed.scripts], listed.damaged) == (["b"], ["a"])
    with pytest.raises(StorageTrouble, match="damaged"):
        await call("run_script", name="a")
    assert (await call("save_script", name="a", description="", language="bash", code="echo new")).outcome == "replaced"
    assert (await call("run_script", name="a")).stdout == "new\n"


async def test_a_damaged_script_can_be_deleted(call: CallTool, code_config: CodeConfig) -> None:
    await call("save_script", name="a", description="", language="bash", code="true")
    (code_config.data / "scripts" / "a.json").write_bytes(b"\xff\x00")
    await call("delete_script", name="a")
    assert os.listdir(code_config.data / "scripts") == []


async def test_of_scripts_saved_at_the_same_time_none_is_lost(call: CallTool, workspace: Path) -> None:
    arguments = {"name": "same", "description": "d", "language": "python"}
    saved = await asyncio.gather(*(call("save_script", **arguments, code=f"print({number})") for number in range(3)))
    assert sorted(one.outcome for one in saved) == ["created", "replaced", "replaced"]
    kept = [Script.model_validate_json((workspace / one.backup).read_bytes()).code for one in saved if one.backup]
    assert {*kept, (await call("get_script", name="same")).code} == {"print(0)", "print(1)", "print(2)"}
