"""Fetching a model: resumed, checked, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from annabelle.core.errors import ConfigMistake, NotFound, ProviderDown, ProviderFailed, ProviderRefused, StorageTrouble
from annabelle.core.home import Home
from annabelle.llm.gguf_models import GgufModel, GgufRegistry, download_model
from support.scripted_model.file_server import FileServer

CONTENT = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def files() -> Iterator[FileServer]:
    with FileServer(CONTENT) as server:
        yield server


@pytest.fixture
def registry(home: Home) -> GgufRegistry:
    return GgufRegistry(home)


def model_at(files: FileServer, **fields: object) -> GgufModel:
    base = {"name": "tiny", "title": "Tiny", "url": files.url, "size": len(CONTENT), "sha256": DIGEST}
    return GgufModel.model_validate({**base, **fields})


@pytest.mark.req("LLM-03")
async def test_a_model_is_fetched_checked_and_put_in_place(files: FileServer, registry: GgufRegistry) -> None:
    seen: list[tuple[int, int | None]] = []
    file = await download_model(registry, model_at(files), lambda done, total: seen.append((done, total)))
    assert file.read_bytes() == CONTENT
    assert file.parent == registry.own_file.parent
    assert [path.name for path in file.parent.iterdir()] == ["tiny.gguf"]
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))


@pytest.mark.req("LLM-03")
async def test_what_is_there_and_right_is_not_fetched_again(files: FileServer, registry: GgufRegistry) -> None:
    await download_model(registry, model_at(files))
    await download_model(registry, model_at(files))
    assert len(files.ranges) == 1


@pytest.mark.req("LLM-03")
async def test_a_broken_download_goes_on_where_it_stopped(files: FileServer, registry: GgufRegistry) -> None:
    files.break_after = 300_000
    with pytest.raises(ProviderDown, match="broke off"):
        await download_model(registry, model_at(files))
    part = registry.own_file.parent / "tiny.gguf.part"
    have = part.stat().st_size
    assert 0 < have <= 300_000
    files.break_after = None
    assert (await download_model(registry, model_at(files))).read_bytes() == CONTENT
    assert files.ranges == ["", f"bytes={have}-"]
    assert not part.exists()


@pytest.mark.req("LLM-03")
async def test_a_server_without_ranges_sends_everything_again(files: FileServer, registry: GgufRegistry) -> None:
    files.break_after = 300_000
    with pytest.raises(ProviderDown):
        await download_model(registry, model_at(files))
    files.break_after, files.knows_ranges = None, False
    assert (await download_model(registry, model_at(files))).read_bytes() == CONTENT


@pytest.mark.req("LLM-03")
@pytest.mark.incident("I-11")
async def test_a_file_that_is_not_the_pinned_one_is_removed_and_never_used(
    files: FileServer, registry: GgufRegistry
) -> None:
    files.content = b"evil" + CONTENT[4:]
    with pytest.raises(ProviderFailed, match="not the pinned file"):
        await download_model(registry, model_at(files))
    assert list(registry.own_file.parent.iterdir()) == []


@pytest.mark.req("LLM-03")
async def test_a_part_longer_than_the_file_is_begun_again(files: FileServer, registry: GgufRegistry) -> None:
    part = registry.own_file.parent / "tiny.gguf.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(CONTENT + b"too much")
    assert (await download_model(registry, model_at(files, size=None))).read_bytes() == CONTENT


@pytest.mark.req("LLM-03")
async def test_a_damaged_model_in_place_is_replaced(files: FileServer, registry: GgufRegistry) -> None:
    file = await download_model(registry, model_at(files))
    file.write_bytes(b"damaged")
    assert (await download_model(registry, model_at(files))).read_bytes() == CONTENT


@pytest.mark.req("LLM-03")
async def test_a_disk_without_room_is_told_before_the_first_byte(
    files: FileServer, registry: GgufRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Disk(NamedTuple):
        total: int
        used: int
        free: int

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(1000, 999, 1))
    with pytest.raises(StorageTrouble, match="are free"):
        await download_model(registry, model_at(files))
    assert files.ranges == []


@pytest.mark.req("LLM-03")
@pytest.mark.parametrize(("status", "kind"), [(404, ProviderRefused), (503, ProviderDown)])
async def test_a_server_that_has_it_not_is_said_in_a_sentence(
    status: int, kind: type[Exception], files: FileServer, registry: GgufRegistry
) -> None:
    files.status = status
    with pytest.raises(kind, match=str(status)):
        await download_model(registry, model_at(files))


@pytest.mark.req("LLM-03")
@pytest.mark.incident("I-11")
async def test_without_a_checksum_the_publishers_is_pinned_for_good(files: FileServer, registry: GgufRegistry) -> None:
    files.linked_etag = f'"{DIGEST}"'
    unpinned = model_at(files, sha256=None, size=None)
    await download_model(registry, unpinned)
    assert registry.find("tiny").sha256 == DIGEST
    files.linked_etag, files.content = f'"{hashlib.sha256(b"new").hexdigest()}"', b"new"
    (registry.own_file.parent / "tiny.gguf").unlink()
    with pytest.raises(ProviderFailed):
        await download_model(registry, registry.find("tiny"))


@pytest.mark.req("LLM-03")
async def test_what_can_not_be_checked_is_not_fetched(files: FileServer, registry: GgufRegistry) -> None:
    with pytest.raises(ConfigMistake, match="No SHA-256"):
        await download_model(registry, model_at(files, sha256=None))
    assert files.ranges == []


@pytest.mark.req("LLM-03")
def test_the_registry_pins_every_model_it_ships(registry: GgufRegistry) -> None:
    models = registry.models()
    assert {model.name for model in models} >= {"qwen2.5-0.5b", "qwen2.5-1.5b"}
    for model in models:
        assert model.sha256 is not None
        assert model.size is not None
        assert model.licence == "Apache-2.0"
        assert "/resolve/main/" not in model.url


@pytest.mark.req("LLM-03")
def test_a_users_own_model_stands_beside_and_over_the_shipped_ones(registry: GgufRegistry) -> None:
    own = GgufModel(name="mine", title="Mine", url="https://example.org/mine.gguf", sha256=DIGEST)
    registry.remember(own)
    registry.remember(own.model_copy(update={"note": "again"}))
    assert registry.find("mine").note == "again"
    assert len([model for model in registry.models() if model.name == "mine"]) == 1
    assert registry.find("qwen2.5-0.5b").sha256 != DIGEST
    with pytest.raises(NotFound) as caught:
        registry.find("other")
    assert "mine" in str(caught.value.hint)


@pytest.mark.req("LLM-03")
@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", ""])
def test_a_name_can_not_leave_the_models_folder(name: str, registry: GgufRegistry) -> None:
    registry.own_file.parent.mkdir(parents=True, exist_ok=True)
    entry = {"name": name, "title": "x", "url": "https://example.org/x"}
    registry.own_file.write_text(json.dumps([entry]))
    with pytest.raises(ConfigMistake, match=r"registry\.json"):
        registry.models()
