"""Whatever a path says, and whatever happens to the disk meanwhile, nothing outside is read or changed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.servers.filer.server import build
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.paths import ResolvedPath, split_path
from annabelle.servers.kit.files.walker import PathWalker
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-FIL")

SECRET = "only outside"
READ = "read_file"
WRITERS = ("create_file", "update_file", "delete_file", "move_from", "move_to", "copy_from", "copy_to")


@dataclass
class World:
    """A filer, a granted folder, a folder that is neither, and links that lead there."""

    base: Path
    filer: ToolServer
    workspace: Path
    granted: Path
    outside: Path
    loop: asyncio.Runner

    def outside_state(self) -> dict[str, bytes | None]:
        """Everything that must never change: the outside, the keys, the home's own files."""
        places = [self.outside, self.base / "person", self.base / "home/annabelle.token", self.base / "home/config"]
        files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*")))]
        return {str(file): file.read_bytes() if file.is_file() else None for file in files}

    def call(self, tool: str, **arguments: object) -> str:
        """Run one tool; the answer as text, also a refusal's."""
        try:
            result = self.loop.run(self.filer.tools[tool].call(arguments))
        except AnnabelleError as error:
            return error.message
        return result.model_dump_json()


@contextmanager
def world() -> Generator[World]:
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="filer-")))
    try:
        home = Home(base / "home").prepare()
        home.token_file.write_text(SECRET)
        granted, outside, person = base / "granted", base / "outside", base / "person"
        for folder in (granted, outside, person / ".ssh", granted / "sub", outside / "sub"):
            folder.mkdir(parents=True)
        for file in (outside / "a", outside / "sub/a", person / ".ssh/a"):
            file.write_text(SECRET)
        config = FilesConfig(
            home=home,
            user_home=person,
            workspace=home.workspace,
            grants_file=home.config / "filer-grants.json",
            audit_file=home.logs / "audit.jsonl",
        )
        config.grants_file.write_text(json.dumps({"grants": [{"path": str(granted), "permission": "read-write"}]}))
        filer = build(config)
        with asyncio.Runner() as loop:
            made = World(base, filer, home.workspace, granted, outside, loop)
            made.call("create_file", path="sub/a", content="inside")
            for root in (home.workspace, granted):
                (root / "out").symlink_to(outside)
                (root / "file").symlink_to(outside / "sub/a")
                (root / "up").symlink_to("..")
                (root / "sub/rel").symlink_to("../../../outside")
                os.link(outside / "a", root / "hard")
            yield made
    finally:
        shutil.rmtree(base, ignore_errors=True)


NAMES = st.sampled_from(
    [
        "a",
        "sub",
        "out",
        "file",
        "up",
        "rel",
        "hard",
        "..",
        ".",
        "",
        "%2e%2e",
        "%252e%252e",
        ".%2e",
        "..%2f..",
        "..\\..",
        "．．",
        "‥",
        ".. ",
        "...",
        "~",
        "~root",
        "temp",
        "outside",
        "home",
        "annabelle.token",
        ".ssh",
        "a\0b",
        "\n",
        "\u202e",
        "é",
        "é",
        "x" * 256,
        "/",
        "//",
    ]
)
STARTS = [
    "",
    "/",
    "//",
    "./",
    "../",
    "~/",
    "{base}/",
    "{workspace}/",
    "{granted}/",
    "{outside}/",
    "/proc/self/root{base}/",
]
HOSTILE = st.builds(
    lambda start, names, end: start + "/".join(names) + end,
    st.sampled_from(STARTS),
    st.lists(st.one_of(NAMES, st.text(max_size=6)), max_size=5),
    st.sampled_from(["", "/", "/.", "/..", "/a"]),
)


@pytest.fixture(scope="module")
def shared() -> Generator[World]:
    with world() as made:
        yield made


def arguments(action: str, path: str) -> tuple[str, dict[str, object]]:
    match action:
        case "create_file":
            return action, {"path": path, "content": "written", "overwrite": True}
        case "update_file":
            return action, {"path": path, "content": "written"}
        case "move_from":
            return "move_file", {"source": path, "destination": "taken"}
        case "move_to":
            return "move_file", {"source": "sub/a", "destination": path}
        case "copy_from":
            return "copy_file", {"source": path, "destination": "copied"}
        case "copy_to":
            return "copy_file", {"source": "sub/a", "destination": path}
        case _:
            return action, {"path": path}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=HOSTILE, action=st.sampled_from([READ, "list_files", *WRITERS]))
@example(path="out/a", action=READ)
@example(path="file", action=READ)
@example(path="hard", action=READ)
@example(path="hard", action="update_file")
@example(path="{granted}/out/a", action="create_file")
@example(path="up/annabelle.token", action=READ)
@example(path="{granted}/up/outside/a", action="delete_file")
@example(path="sub/rel/new", action="create_file")
@example(path="{base}/home/annabelle.token", action="copy_from")
@example(path="..%2f..%2foutside/a", action=READ)
@example(path="/proc/self/root{outside}/a", action=READ)
def test_no_path_reads_or_changes_anything_outside(shared: World, path: str, action: str) -> None:
    for name in ("base", "workspace", "granted", "outside"):
        path = path.replace(f"{{{name}}}", str(getattr(shared, name)))
    before = shared.outside_state()
    tool, values = arguments(action, path)
    answer = shared.call(tool, **values)
    assert SECRET not in answer
    assert shared.outside_state() == before
    for copy in ("copied", "taken"):
        assert SECRET not in shared.call(READ, path=copy)
        shared.call("delete_file", path=copy)
    shared.call("create_file", path="sub/a", content="inside")


@settings(max_examples=300)
@given(st.text(max_size=40))
def test_no_spelling_yields_a_step_up(path: str) -> None:
    try:
        _, names = split_path(path)
    except AnnabelleError:
        return
    assert not any(name in ("", ".", "..") or "/" in name or "\0" in name for name in names)


@pytest.mark.parametrize(
    "path", ["..", "a/../b", "%2e%2e/a", "%252E%252e/a", "%25252e./a", "..%5cx", "a\\..\\b", "..%2Fa", "/a/%2e%2e/etc"]
)
def test_climbing_is_refused_in_every_spelling(path: str) -> None:
    with pytest.raises(AnnabelleError, match=r"'\.\.'"):
        split_path(path)


@pytest.mark.parametrize("path", ["100%.txt", "a%20b.txt", "...", "a..b", "..a", "x%zz", "C:\\a"])
def test_ordinary_names_with_odd_characters_are_fine(path: str) -> None:
    assert split_path(path) == (False, (path,))


@pytest.mark.parametrize("path", ["a\0b", "a%00b", "a\nb", "a\x1bb", "a\u202eb", "\ud800", "x" * 5000, "y" * 256])
def test_names_that_deceive_or_do_not_fit_are_refused(path: str) -> None:
    with pytest.raises(AnnabelleError):
        split_path(path)


def swap(shared: World, place: Path, stop: threading.Event) -> None:
    """As fast as possible: now a real folder, now a link to the outside, now nothing."""
    real, link = place.with_name("real"), place.with_name("link")
    (real / "sub").mkdir(parents=True)
    (real / "sub/a").write_text("inside")
    link.unlink(missing_ok=True)
    link.symlink_to(shared.outside)
    while not stop.is_set():
        for other in (real, link):
            try:
                other.rename(place)
                place.rename(other)
            except OSError:  # the filer made a folder of that name when it was free
                shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("root", ["workspace", "granted"])
def test_a_link_swapped_in_meanwhile_is_never_followed(root: str) -> None:
    with world() as made:
        place = getattr(made, root) / "swap"
        prefix = "" if root == "workspace" else f"{made.granted}/"
        before = made.outside_state()
        stop = threading.Event()
        swapper = threading.Thread(target=swap, args=(made, place, stop))
        swapper.start()
        try:
            seen: set[str] = set()
            for number in range(80):
                seen.add(made.call(READ, path=f"{prefix}swap/sub/a"))
                made.call("create_file", path=f"{prefix}swap/new-{number}", content="written")
                made.call("update_file", path=f"{prefix}swap/sub/a", content="inside")
                made.call("list_files", path=f"{prefix}swap")
                made.call("search_files", query="only", search_type="content", search_in="all")
                made.call("delete_file", path=f"{prefix}swap/sub/a")
                made.call("move_file", source="sub/a", destination=f"{prefix}swap/moved-{number}")
                made.call("create_file", path="sub/a", content="inside")
        finally:
            stop.set()
            swapper.join(seconds(10))
        assert not any(SECRET in answer for answer in seen)
        assert made.outside_state() == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_file_swapped_between_look_and_open_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    look = PathWalker.status

    def look_then_swap(self: PathWalker, folder: int, spot: ResolvedPath) -> tuple[str, os.stat_result]:
        found = look(self, folder, spot)
        if spot.name == "leaf":
            leaf.unlink(missing_ok=True)
            if kind == "link":
                leaf.symlink_to(made.outside / "sub/a")
            elif kind == "pipe":
                os.mkfifo(leaf)
            else:
                leaf.mkdir()
        return found

    with world() as made:
        leaf = made.workspace / "leaf"
        leaf.write_text("inside")
        before = made.outside_state()
        monkeypatch.setattr(PathWalker, "status", look_then_swap)
        answer = made.call(READ, path="leaf")
        assert {"link": "link", "pipe": "is a pipe", "folder": "is a folder"}[kind] in answer
        assert SECRET not in answer
        assert made.outside_state() == before
