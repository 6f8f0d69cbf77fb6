"""The cache on disk: asked once, shared, bounded, cleared on demand, and never a reason to fail."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from annabelle.core.errors import StorageTrouble
from annabelle.embeddings import Embedder, EmbeddingConfig, EmbeddingsUnavailable, ModelName, cache, make_embedder
from annabelle.embeddings.cache import FILE_NAME, VectorCache, clear_cache, driver, make_cache_key
from support.timing import seconds
from support.vector_server import VectorServer

MODEL = ModelName("ollama", "some-model")
TEXTS = [f"text {number}" for number in range(10)]


@asynccontextmanager
async def embedding(server: VectorServer, folder: Path, model: str = "some-model") -> AsyncGenerator[Embedder]:
    embedder = make_embedder(EmbeddingConfig("ollama", model, server.url), folder)
    try:
        yield embedder
    finally:
        await embedder.close()


async def asked_for(server: VectorServer, folder: Path, texts: list[str], model: str = "some-model") -> list[str]:
    """What a new process asks the server for; the vectors must be right however they came."""
    before = len(server.texts)
    async with embedding(server, folder, model) as embedder:
        rows = await embedder.embed(texts)
    expected = np.asarray([server.vector(text) for text in texts])
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    return server.texts[before:]


@dataclass(frozen=True)
class OnDisk:
    """The file of vectors, looked at and damaged from outside."""

    path: Path

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @property
    def records(self) -> int:
        with closing(driver.connect(self.path)) as connection:
            return connection.execute("SELECT count(*) FROM vectors").fetchone()[0]

    @contextmanager
    def locked(self, how: str) -> Generator[None]:
        with closing(driver.connect(self.path, isolation_level=None)) as connection:
            connection.execute(f"BEGIN {how}")
            yield

    def write(self, content: bytes | bytearray) -> None:
        self.path.write_bytes(content)

    def folder_names(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.iterdir())


@pytest.fixture
def disk(tmp_path: Path) -> OnDisk:
    return OnDisk(tmp_path / FILE_NAME)


def keys(texts: list[str]) -> list[bytes]:
    return [make_cache_key(MODEL, text) for text in texts]


@pytest.mark.req("SEL-07")
async def test_a_text_is_asked_for_once_over_all_processes(server: VectorServer, tmp_path: Path, disk: OnDisk) -> None:
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS
    assert await asked_for(server, tmp_path, [*TEXTS[::-1], "new", "new"]) == ["new"]
    assert disk.records == 11
    assert os.stat(disk.path).st_mode & 0o077 == 0
    assert not any(text.encode() in disk.content for text in TEXTS)


@pytest.mark.req("SEL-07")
async def test_what_is_cached_works_while_the_server_is_away(server: VectorServer, tmp_path: Path) -> None:
    await asked_for(server, tmp_path, TEXTS)
    server.behave = lambda _asked: (503, {})
    async with embedding(server, tmp_path) as embedder:
        rows = await embedder.embed([*TEXTS, "", TEXTS[0]])
        assert rows.any(axis=1).tolist() == [True] * 10 + [False, True]
        assert (await embedder.embed([" "])).shape == (1, 8)
        assert (await embedder.embed([])).shape == (0, 8)
        with pytest.raises(EmbeddingsUnavailable):
            await embedder.embed([*TEXTS, "new"])


@pytest.mark.req("SEL-07", "EMB-01")
async def test_a_changed_model_has_vectors_of_its_own_and_the_old_ones_go(
    server: VectorServer, tmp_path: Path, disk: OnDisk
) -> None:
    await asked_for(server, tmp_path, TEXTS)
    assert await asked_for(server, tmp_path, TEXTS[:3], model="other-model") == TEXTS[:3]
    assert disk.records == 3


@pytest.mark.req("SEL-07")
async def test_a_query_is_not_mistaken_for_a_document_and_is_not_written_down(
    server: VectorServer, tmp_path: Path, disk: OnDisk
) -> None:
    async with embedding(server, tmp_path, "nomic-embed-text") as embedder:
        as_query = await embedder.embed(["hi"], query=True)
        assert disk.folder_names() == []
        as_document = await embedder.embed(["hi"])
        assert not np.array_equal(as_document, as_query)
        np.testing.assert_array_equal(await embedder.embed(["hi"]), as_document)
        np.testing.assert_array_equal(await embedder.embed(["hi"], query=True), as_query)
    assert server.texts == ["search_query: hi", "search_document: hi", "search_query: hi"]


@pytest.mark.req("SEL-07", "EMB-01")
async def test_a_model_that_is_chosen_by_the_server_has_a_cache_too(server: VectorServer, tmp_path: Path) -> None:
    for _ in range(2):
        embedder = make_embedder(EmbeddingConfig("lmstudio", "", f"{server.url}/v1"), tmp_path)
        assert (await embedder.embed(TEXTS)).shape == (10, 8)
        await embedder.close()
    assert server.texts == [f"search_document: {text}" for text in TEXTS]


@pytest.mark.req("SEL-07", "EMB-01")
async def test_a_model_that_changed_its_dimension_empties_the_file(server: VectorServer, tmp_path: Path) -> None:
    await asked_for(server, tmp_path, TEXTS)
    server.dimension = 12
    assert await asked_for(server, tmp_path, ["new", *TEXTS]) == ["new", "new", *TEXTS]
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS
    assert await asked_for(server, tmp_path, TEXTS) == []

    async with embedding(server, tmp_path) as embedder:
        await embedder.embed(TEXTS[:1])
        server.dimension = 8
        with pytest.raises(EmbeddingsUnavailable, match="8 numbers instead of 12"):
            await embedder.embed(["newer"])
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS


@pytest.mark.req("SEL-07")
async def test_a_flipped_byte_costs_time_and_never_an_answer(
    server: VectorServer, tmp_path: Path, disk: OnDisk
) -> None:
    await asked_for(server, tmp_path, TEXTS)
    good = disk.content
    for place in [*range(0, 120, 3), *range(120, len(good), 97)]:
        damaged = bytearray(good)
        damaged[place] ^= 0x41
        disk.write(damaged)
        await settled(server, tmp_path)


@pytest.mark.req("SEL-07")
async def test_a_file_cut_anywhere_is_repaired(server: VectorServer, tmp_path: Path, disk: OnDisk) -> None:
    await asked_for(server, tmp_path, TEXTS)
    good = disk.content
    for length in [*range(0, 120, 7), *range(120, len(good), 499)]:
        disk.write(good[:length])
        await settled(server, tmp_path)


async def settled(server: VectorServer, folder: Path) -> None:
    """The cache heals itself: all answers are right, and soon nothing is asked for."""
    for _ in range(4):
        if not await asked_for(server, folder, TEXTS):
            return
    pytest.fail("the cache stays damaged")


@pytest.mark.req("SEL-07")
@pytest.mark.parametrize("content", [b"SQLite format 3\0" * 100, b"\0" * 5000, b"ANNAVEC1" + b"\xff" * 4000])
async def test_a_file_that_is_something_else_is_replaced(
    server: VectorServer, tmp_path: Path, disk: OnDisk, content: bytes
) -> None:
    disk.write(content)
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS
    assert await asked_for(server, tmp_path, TEXTS) == []


@pytest.mark.req("SEL-07")
async def test_a_damaged_file_is_noticed_by_an_embedder_that_knows_it(
    server: VectorServer, tmp_path: Path, disk: OnDisk
) -> None:
    async with embedding(server, tmp_path) as embedder:
        await embedder.embed(TEXTS)
        good = disk.content
        for damage in (good[:100], b"", b"x" * len(good), good[: len(good) // 2] + b"y" * (len(good) // 2)):
            disk.write(damage)
            first, second = await embedder.embed(TEXTS), await embedder.embed(TEXTS)
            np.testing.assert_array_equal(first, second)
        os.unlink(disk.path)
        assert (await embedder.embed(TEXTS)).shape == (10, 8)
    assert await asked_for(server, tmp_path, TEXTS) == []


@pytest.mark.req("SEL-07")
@pytest.mark.parametrize("trouble", ["database is locked", "database or disk is full"])
async def test_a_disk_that_does_not_take_it_is_mentioned_once_and_costs_no_answer(
    server: VectorServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    disk: OnDisk,
    trouble: str,
) -> None:
    caplog.set_level(logging.WARNING)
    await asked_for(server, tmp_path, TEXTS[:1])
    monkeypatch.setattr(cache, "LOCK_SECONDS", 0.01)
    if "full" in trouble:
        monkeypatch.setattr(cache, "_TABLE", "PRAGMA max_page_count = 1")
    with disk.locked("IMMEDIATE") if "locked" in trouble else nullcontext():
        async with embedding(server, tmp_path) as embedder:
            for text in TEXTS[1:] if "locked" in trouble else [f"{n}" for n in range(300)]:
                assert (await embedder.embed([text])).shape == (1, 8)
    assert [record.message.count(trouble) for record in caplog.records] == [1]
    monkeypatch.undo()
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS[1:]


@pytest.mark.req("SEL-07")
async def test_a_folder_that_is_none_costs_no_answer(server: VectorServer, tmp_path: Path) -> None:
    in_the_way = tmp_path / "in-the-way"
    in_the_way.write_text("a file")
    assert await asked_for(server, in_the_way, TEXTS) == TEXTS
    (tmp_path / "folder" / FILE_NAME).mkdir(parents=True)
    assert await asked_for(server, tmp_path / "folder", TEXTS) == TEXTS


@pytest.mark.req("SEL-07", "TRU-09")
async def test_a_cleared_folder_holds_no_vector_of_any_model(
    server: VectorServer, tmp_path: Path, disk: OnDisk
) -> None:
    await asked_for(server, tmp_path, TEXTS)
    old_names = (".lock", "ollama-older.vectors", ".ollama-older.vectors.new")
    for name in old_names:
        (tmp_path / name).write_bytes(b"of an earlier version")
    (tmp_path / "lmstudio-model.json").write_text("{}")
    assert all(key in disk.content for key in keys(TEXTS))

    clear_cache(tmp_path)

    assert not any(key in disk.content for key in keys(TEXTS))
    assert disk.records == 0
    assert disk.folder_names() == ["lmstudio-model.json", FILE_NAME], "the model that was chosen stays chosen"
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS
    disk.write(b"damaged" * 1000)
    clear_cache(tmp_path)
    assert disk.records == 0
    clear_cache(tmp_path / "never-made")
    assert not (tmp_path / "never-made").exists()


@pytest.mark.req("SEL-07")
async def test_files_of_an_earlier_version_are_removed(server: VectorServer, tmp_path: Path, disk: OnDisk) -> None:
    (tmp_path / "ollama-some-model-1a2b3c4d.vectors").write_bytes(b"ANNAVEC1")
    assert await asked_for(server, tmp_path, TEXTS) == TEXTS
    assert disk.folder_names() == [FILE_NAME]


@pytest.mark.req("SEL-07", "TRU-09")
async def test_an_embedder_that_knows_the_file_notices_that_another_process_cleared_it(
    server: VectorServer, tmp_path: Path
) -> None:
    async with embedding(server, tmp_path) as embedder:
        before = await embedder.embed(TEXTS)
        clear_cache(tmp_path)
        np.testing.assert_array_equal(await embedder.embed(TEXTS), before)
        assert server.texts == [*TEXTS, *TEXTS]


@pytest.mark.req("SEL-07", "TRU-09")
async def test_a_folder_that_cannot_be_cleared_is_an_error(
    server: VectorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: OnDisk
) -> None:
    await asked_for(server, tmp_path, TEXTS)
    monkeypatch.setattr(cache, "LOCK_SECONDS", 0.05)
    with disk.locked("IMMEDIATE"):
        with pytest.raises(StorageTrouble, match="database is locked"):
            clear_cache(tmp_path)
        assert await asked_for(server, tmp_path, [*TEXTS, "new"]) == ["new"]


@pytest.mark.req("SEL-07")
def test_a_full_file_keeps_the_newer_half(tmp_path: Path, disk: OnDisk) -> None:
    cache = VectorCache(tmp_path, largest=50_000)
    rng = np.random.default_rng(1)
    texts = [f"text {number}" for number in range(800)]
    for text in texts:
        cache.add(MODEL, {make_cache_key(MODEL, text): rng.standard_normal(8).astype(np.float32)})
        assert len(disk.content) <= 58_000
    known = cache.read(keys(texts))
    assert 80 < len(known) < 320
    assert list(known) == keys(texts)[-len(known) :]
    assert list(VectorCache(tmp_path).read(keys(texts))) == list(known)


@pytest.mark.req("SEL-07")
async def test_many_tasks_at_once_share_one_file(server: VectorServer, tmp_path: Path, disk: OnDisk) -> None:
    async with embedding(server, tmp_path) as one, embedding(server, tmp_path) as two, asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task((one if number % 2 else two).embed([*TEXTS, f"own {number}"]))
    records = disk.records
    assert await asked_for(server, tmp_path, [*TEXTS, *(f"own {number}" for number in range(20))]) == []
    assert records == 30, "no text twice"


WRITER = """
import sys
from pathlib import Path
import numpy as np
from annabelle.embeddings import ModelName
from annabelle.embeddings.cache import VectorCache, make_cache_key

folder, name = Path(sys.argv[1]), sys.argv[2]
model = ModelName("ollama", "some-model")
cache = VectorCache(folder)
sys.stdin.readline()
for number in range(150):
    texts = [f"shared {number}", f"{name} {number}"]
    cache.add(model, {make_cache_key(model, text): np.full(8, number, np.float32) for text in texts})
"""


@pytest.mark.req("SEL-07")
def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path, disk: OnDisk) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], stdin=subprocess.PIPE, text=True)
        for name in ("first", "second")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=seconds(60))
        assert writer.returncode == 0
    texts = [f"{name} {number}" for name in ("shared", "first", "second") for number in range(150)]
    known = VectorCache(tmp_path).read(keys(texts))
    assert [set(known[key].tolist()) for key in keys(texts)] == [{float(text.split()[1])} for text in texts]
    assert disk.records == len(known)
