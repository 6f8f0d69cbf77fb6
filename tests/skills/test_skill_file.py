"""SKILL.md files: what the public format allows is loaded, everything else is refused with its reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.skills.skill_file import MOST_BYTES, SkillFile, SkillMistake, parse_skill, read_skill

REAL = """---
name: pdf-tools
description: >-
  Fill forms and merge pages: use it when the user
  speaks of PDF files.
license: Apache-2.0
compatibility: Needs Python 3.11
allowed-tools: Bash(git add:*) Read
metadata:
  author: somebody
  version: "1.0"
---

# PDF

Read `references/forms.md` first.
"""


def parse(text: str, name: str = "pdf-tools") -> SkillFile:
    return parse_skill(text, Path(name))


def header(*lines: str, body: str = "Do it.") -> str:
    return "\n".join(["---", *lines, "---", body])


def refusal(text: str, name: str = "pdf-tools") -> tuple[str, str]:
    with pytest.raises(SkillMistake) as refused:
        parse(text, name)
    return refused.value.kind, str(refused.value)


@pytest.mark.req("SKL-06")
def test_a_real_file_is_loaded_with_all_its_fields() -> None:
    skill = parse(REAL)
    assert skill.name == "pdf-tools"
    assert skill.description == "Fill forms and merge pages: use it when the user speaks of PDF files."
    assert (skill.license, skill.compatibility) == ("Apache-2.0", "Needs Python 3.11")
    assert skill.allowed_tools == ("Bash(git add:*)", "Read")
    assert skill.tools == ("Bash", "Read")
    assert skill.metadata == {"author": "somebody", "version": "1.0"}
    assert skill.body.startswith("# PDF")
    assert skill.warnings == ()


@pytest.mark.req("SKL-06")
def test_harmless_variations_of_real_files_are_loaded() -> None:
    assert parse("\ufeff" + REAL.replace("\n", "\r\n")) == parse(REAL)
    assert parse(REAL.replace("---\n", "---  \n")) == parse(REAL)
    listed = parse(header("name: pdf-tools", "description: x", "allowed-tools: [Read, 'Bash(ls:*)']"))
    assert listed.allowed_tools == ("Read", "Bash(ls:*)")
    commas = parse(header("name: pdf-tools", "description: x", "allowed-tools: Read, Write,Bash(git add:*)"))
    assert commas.allowed_tools == ("Read", "Write", "Bash(git add:*)")
    extra = parse(header("name: pdf-tools", "description: x", "version: 1.0", "license:", "metadata:", body=""))
    assert extra.warnings == (
        "version is not a field of the format",
        "there are no instructions below the front matter",
    )
    fenced = parse(header("name: pdf-tools", "description: x", body="one\n---\ntwo"))
    assert fenced.body == "one\n---\ntwo"


@pytest.mark.req("SKL-06")
def test_what_annabelle_reads_in_the_metadata_is_available_as_values() -> None:
    skill = parse(
        header(
            "name: pdf-tools",
            "description: x",
            "metadata:",
            "  keywords: [merge pdf, form]",
            "  priority: 7",
            "  required_tools: filer_read_file, filer_create_file",
            "  max_steps: '8'",
            "  trigger_config: {schedule: 0 8 * * *, since: 2026-01-02}",
            "  execution_plan:",
            "    - toolName: send_message",
            "      parameters: {text: hello}",
        )
    )
    assert skill.keywords == ("merge pdf", "form")
    assert (skill.priority, skill.max_steps) == (7, 8)
    assert skill.required_tools == ("filer_read_file", "filer_create_file")
    assert skill.trigger_config == {"schedule": "0 8 * * *", "since": "2026-01-02"}
    assert skill.execution_plan == ({"toolName": "send_message", "parameters": {"text": "hello"}},)
    assert skill.warnings == ()


@pytest.mark.req("SKL-06")
def test_metadata_that_means_something_else_elsewhere_is_warned_about_and_ignored() -> None:
    said = ("  priority: high", "  max_steps: 0", "  keywords: [[a]]", "  trigger_config: daily", "  execution_plan: x")
    skill = parse(header("name: pdf-tools", "description: x", "metadata:", *said))
    assert (skill.priority, skill.max_steps, skill.keywords, skill.trigger_config) == (0, None, (), {})
    assert len(skill.warnings) == 5
    assert skill.warnings[1] == "metadata.priority is no number from 0 to 100 and is ignored"


BOMB = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]"


@pytest.mark.req("SKL-06")
@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", "no front matter", "does not begin with a line ---"),
        ("# PDF\n", "no front matter", "does not begin"),
        ("\n---\nname: pdf-tools\n---\n", "no front matter", "does not begin"),
        ("---\nname: pdf-tools\ndescription: x\n", "no front matter", "does not end"),
        ("---\n" + "a: b\n" * 100_000, "no front matter", "within 64 KB"),
        (header("name: pdf-tools", "description: Use it: always"), "not YAML", "line 3: mapping values"),
        (header("name: pdf-tools", "description: Use it: always"), "not YAML", "put the value in quotes"),
        (header("name: [pdf"), "not YAML", "line"),
        (header("name: pdf-tools", "name: other", "description: x"), "not YAML", "line 3 gives name a second time"),
        (header("name: pdf-tools", "description: !!python/name:os.system x"), "not YAML", "not YAML"),
        (header("name: pdf-tools", "description: x", f"metadata: {{a: {'[' * 50}{']' * 50}}}"), "not YAML", "deeply"),
        (header("name: pdf-tools", "description: x", f"metadata: {{n: {'9' * 5000}}}"), "not YAML", "cannot be read"),
        (header("name: pdf-tools", "description: x", "metadata: {n: 2026-13-45}"), "not YAML", "cannot be read"),
        (header("name: pdf-tools", "description: x", f"license: {':'.join(['59'] * 9000)}"), "not YAML", "cannot be"),
        (header("name: pdf-tools", "description: !!binary eA=="), "not YAML", "cannot be read"),
        (header("name: pdf-tools", "description: x", "metadata: !!set {a, b}"), "not YAML", "cannot be read"),
        (header("name: pdf-tools", BOMB), "alias", "line 3 uses an alias"),
        (header("name: &n pdf-tools", "description: *n"), "alias", "line 2 uses an alias"),
        (header("- name"), "wrong type", "not a list of names and values"),
        (header("just text"), "wrong type", "not a list of names and values"),
        (header("name: pdf-tools", "description: [a, b]"), "wrong type", "its description is a list"),
        (header("name: pdf-tools", "description: {a: b}"), "wrong type", "its description is names and values"),
        (header("name: 42", "description: x"), "wrong type", "its name is a number"),
        (header("name: yes", "description: x"), "wrong type", "its name is yes or no"),
        (header("name: pdf-tools", "description: x", "metadata: [a]"), "wrong type", "its metadata is a list"),
        (header("name: pdf-tools", "description: x", "license: {a: b}"), "wrong type", "its license"),
        (header("name: pdf-tools", "description: x", "allowed-tools: {a: b}"), "wrong type", "allowed-tools"),
        (header(""), "missing field", "it has no name"),
        (header("description: x"), "missing field", "it has no name"),
        (header("name: pdf-tools"), "missing field", "it has no description"),
        (header("name: pdf-tools", "description: '  '"), "missing field", "it has no description"),
        (header("name: PDF-tools", "description: x"), "bad name", "lowercase"),
        (header("name: pdf_tools", "description: x"), "bad name", "hyphens"),
        (header("name: pdf tools", "description: x"), "bad name", "hyphens"),
        (header("name: ../pdf", "description: x"), "bad name", "hyphens"),
        (header("name: -pdf", "description: x"), "bad name", "begins or ends"),
        (header("name: pdf-", "description: x"), "bad name", "begins or ends"),
        (header("name: pdf--tools", "description: x"), "bad name", "two in a row"),
        (header("name: pdf", "description: x"), "other folder", "its name is 'pdf', and its folder is 'pdf-tools'"),
        (header("name: " + "x" * 65, "description: x"), "too long", "its name has 65 characters, and 64 are allowed"),
        (header("name: pdf-tools", "description: " + "x" * 1025), "too long", "1024 are allowed"),
        (header("name: pdf-tools", "description: x", "compatibility: " + "x" * 501), "too long", "500 are allowed"),
    ],
)  # fmt: skip
def test_a_file_that_breaks_the_format_is_refused_with_the_reason(text: str, kind: str, words: str) -> None:
    found = refusal(text)
    assert found[0] == kind
    assert words in found[1]
    assert "\n" not in found[1]


@pytest.mark.req("SKL-06")
def test_the_longest_values_the_format_allows_are_loaded() -> None:
    name = "a1-" + "x" * 61
    skill = parse(header(f"name: {name}", "description: " + "ü" * 1024, "compatibility: " + "y" * 500), name)
    assert (len(skill.name), len(skill.description), len(skill.compatibility)) == (64, 1024, 500)


def write(root: Path, content: bytes, name: str = "pdf-tools") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(content)
    return folder


def read_refusal(folder: Path) -> tuple[str, str]:
    with pytest.raises(SkillMistake) as refused:
        read_skill(folder, folder.parent)
    return refused.value.kind, str(refused.value)


@pytest.mark.req("SKL-06")
@pytest.mark.parametrize("size", [MOST_BYTES + 1, 5 * MOST_BYTES, 500_000 * MOST_BYTES])
def test_a_file_that_is_too_big_is_refused_without_being_read_whole(tmp_path: Path, size: int) -> None:
    folder = write(tmp_path, REAL.encode())
    os.truncate(folder / "SKILL.md", size)  # no machine could read the last one
    assert read_refusal(folder) == ("too big", "SKILL.md is larger than 1024 KB")


@pytest.mark.req("SKL-06")
def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    assert read_refusal(write(tmp_path, b"---\nname: \xff\n---\n"))[0] == "not UTF-8"
    assert read_refusal(write(tmp_path, REAL.encode("utf-16"), "other"))[0] == "not UTF-8"


@pytest.mark.req("SKL-06")
def test_a_link_out_of_the_folder_is_refused_and_one_inside_it_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text(REAL)
    root = tmp_path / "skills"
    folder = root / "pdf-tools"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(outside)
    assert read_refusal(folder) == ("link", "SKILL.md is a link to something outside its folder")
    (folder / "SKILL.md").unlink()
    (folder / "README.md").write_text(REAL)
    (folder / "SKILL.md").symlink_to("README.md")
    assert read_skill(folder, root).name == "pdf-tools"
    elsewhere = write(tmp_path / "elsewhere", REAL.encode())
    (root / "linked").mkdir()
    (root / "linked" / "pdf-tools").symlink_to(elsewhere)
    assert read_refusal(root / "linked" / "pdf-tools")[0] == "link"


@pytest.mark.req("SKL-06")
def test_a_pipe_a_folder_or_a_circle_of_links_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    for name in ("pipe", "folder", "circle", "nothing"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    (tmp_path / "folder" / "SKILL.md").mkdir()
    (tmp_path / "circle" / "SKILL.md").symlink_to("SKILL.md")
    assert {read_refusal(tmp_path / name)[0] for name in ("pipe", "folder", "circle", "nothing")} == {"unreadable"}


HOSTILE = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="&*!<>{}[]|-:? \n'\"#%@`,.~=0x19", max_size=200),
    st.sampled_from([".nan", "!!binary a", "!!set {a}", "<<: {a: b}", "? [a]\n: b", "1:2:3", "=", "2026-01-01", "\t"]),
)


@pytest.mark.req("SKL-06")
@settings(deadline=None)
@given(name=HOSTILE, description=HOSTILE, rest=HOSTILE, body=HOSTILE)
def test_hostile_front_matter_is_loaded_within_the_limits_or_refused(
    name: str, description: str, rest: str, body: str
) -> None:
    text = f"---\nname: {name}\ndescription: {description}\nmetadata:\n  a: {rest}\n{rest}\n---\n{body}"
    for folder in (name.strip(), "pdf-tools"):
        try:
            skill = parse_skill(text, Path("skills", folder.replace("/", "-").replace("\0", "-") or "x"))
        except SkillMistake:
            continue
        assert 1 <= len(skill.name) <= 64
        assert 1 <= len(skill.description) <= 1024
        assert skill.name == skill.name.lower()
        assert "/" not in skill.name


@pytest.mark.req("SKL-06")
@settings(deadline=None)
@given(content=st.binary(max_size=300))
def test_any_bytes_are_loaded_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = write(tmp_path_factory.mktemp("skills"), b"---\n" + content)
    with pytest.raises(SkillMistake):
        read_skill(folder, folder.parent)
