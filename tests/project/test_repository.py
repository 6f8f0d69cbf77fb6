"""What is committed works on any machine: locked by hash, without anyone's addresses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDERS = ("src", "tests", "scripts", "docs", "bench", "requirements", ".ci")
FILES = ("pyproject.toml", "Makefile", "README.md", "CHANGELOG.md")


def texts(root: Path) -> list[tuple[str, str]]:
    paths = [root / name for name in FILES]
    paths += [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file()]
    return [
        (str(path.relative_to(root)), path.read_text(encoding="utf-8", errors="replace"))
        for path in paths
        if "__pycache__" not in path.parts and path.name != Path(__file__).name
    ]


def test_no_file_names_a_package_registry_or_a_folder_of_one_machine(root: Path):
    telling = re.compile(
        r"(?:index-url|find-links)\s*[= ]\s*\S*(?://|/opt)|//\S+/simple\b|/work/(?:main|shared)|/root/"
    )
    found = [f"{name}: {match[0]}" for name, text in texts(root) if (match := telling.search(text))]
    assert found == []


@pytest.mark.req("PKG-01")
@pytest.mark.parametrize("name", ["run", "test", "external", "bench", "build", "uv"])
def test_every_requirement_is_pinned_with_its_hash(root: Path, name: str):
    text = (root / "requirements" / f"{name}.txt").read_text()
    entries = re.split(r"\n(?=[A-Za-z])", text.strip())
    assert entries
    assert [entry.split("\n")[0] for entry in entries if "--hash=sha256:" not in entry or "==" not in entry] == []
    assert "://" not in text


def test_ci_runs_what_a_developer_runs(root: Path):
    script = root / ".ci" / "run"
    assert "exec make test" in script.read_text()
    assert script.stat().st_mode & 0o111
