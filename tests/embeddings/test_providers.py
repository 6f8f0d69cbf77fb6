"""Vectors over HTTP: the shapes of Ollama and OpenAI, and what a server can do wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, http_providers
from annabelle.embeddings.config import EmbeddingProvider
from annabelle.embeddings.http_embedder import BATCH, LONGEST_TEXT, HttpEmbedder, ProviderPause
from support.vector_server import Answer, Asked, VectorServer

KEY = "sk-proj-do-not-show-this-key"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def connected(
    provider: EmbeddingProvider,
    url: str,
    *,
    model: str = "some-model",
    timeout: float = 10,
    folder: Path | None = None,
    clock: Callable[[], float] | None = None,
) -> AsyncIterator[HttpEmbedder]:
    address = url if provider == "ollama" else f"{url}/v1"
    config = EmbeddingConfig(provider, model, address, SecretStr(KEY), timeout)
    embedder = http_providers.make(config, folder)
    embedder._pause = ProviderPause(clock=clock) if clock else ProviderPause(seconds=0)
    try:
        yield embedder
    finally:
        await embedder.close()


def unit(row: list[float]) -> np.ndarray:
    return np.asarray(row) / np.linalg.norm(row)


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "openai", "compatible"])
async def test_each_text_gets_its_own_vector(server: VectorServer, provider: EmbeddingProvider) -> None:
    texts = [f"text {number}" for number in range(BATCH * 2 + 5)]
    async with connected(provider, server.url) as embedder:
        rows = await embedder.embed(texts)
        assert str(embedder.model) == f"{provider}/some-model"
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [unit(server.vector(text)) for text in texts], atol=1e-6)
    assert [len(asked.texts) for asked in server.asked] == [BATCH, BATCH, 5]
    assert {asked.path for asked in server.asked} == {"/api/embed" if provider == "ollama" else "/v1/embeddings"}
    assert {asked.body["model"] for asked in server.asked} == {"some-model"}
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}


@pytest.mark.req("EMB-01")
async def test_blank_texts_are_zeros_and_are_never_sent(server: VectorServer) -> None:
    async with connected("openai", server.url) as embedder:
        only_blank = await embedder.embed(["", " \0"])
        rows = await embedder.embed(["one", "", "two\0\ud800", "\n"])
        assert (await embedder.embed([])).shape == (0, 8)
    assert only_blank.shape == (2, 8)
    assert not only_blank.any()
    assert rows.any(axis=1).tolist() == [True, False, True, False]
    assert server.texts == [".", "one", "two ?"]


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text", "search_query: hi", "search_document: hi"),
        ("text-embedding-nomic-embed-text-v1.5", "search_query: hi", "search_document: hi"),
        ("multilingual_e5_large", "query: hi", "passage: hi"),
        ("bge-m3", "hi", "hi"),
        ("text-embedding-3-small", "hi", "hi"),
    ],
)
async def test_a_model_that_wants_to_know_what_it_reads_is_told(
    server: VectorServer, model: str, query: str, document: str
) -> None:
    async with connected("compatible", server.url, model=model) as embedder:
        await embedder.embed(["hi"], query=True)
        await embedder.embed(["hi"])
    assert server.texts == [query, document]


@pytest.mark.req("EMB-01")
async def test_a_long_text_is_cut_and_cut_again_when_the_model_finds_it_too_long(server: VectorServer) -> None:
    def picky(asked: Asked) -> Answer:
        return (500, {"error": "input is too large"}) if max(map(len, asked.texts)) > 2000 else server.answer(asked)

    server.behave = picky
    async with connected("lmstudio", server.url) as embedder:
        rows = await embedder.embed(["é" * 1_000_000, "short"])
    assert [max(map(len, asked.texts)) for asked in server.asked] == [LONGEST_TEXT, 1000]
    np.testing.assert_allclose(rows[1], unit(server.vector("short")), atol=1e-6)


@pytest.mark.req("EMB-01")
async def test_a_text_that_is_refused_does_not_close_the_door_for_the_next(server: VectorServer) -> None:
    server.behave = lambda asked: (400, {}) if "bad" in asked.texts else server.answer(asked)
    async with connected("openai", server.url, clock=Clock()) as embedder:
        with pytest.raises(EmbeddingsUnavailable, match="status 400"):
            await embedder.embed(["bad"])
        assert (await embedder.embed(["good"])).shape == (1, 8)


@pytest.mark.req("EMB-01")
async def test_a_text_that_is_refused_keeps_no_other_from_its_vector(server: VectorServer) -> None:
    def picky(asked: Asked) -> Answer:
        refused = "bad" in asked.texts or any(len(text) > 400 for text in asked.texts)
        return (400, {}) if refused else server.answer(asked)

    server.behave = picky
    async with connected("openai", server.url, clock=Clock()) as embedder:
        rows = await embedder.embed(["one", "bad", "字" * 900, "two"])
        assert np.linalg.norm(rows, axis=1).round(5).tolist() == [1, 0, 1, 1]
        np.testing.assert_allclose(rows[3], unit(server.vector("two")), atol=1e-6)
        server.behave = lambda _asked: (400, {})
        with pytest.raises(EmbeddingsUnavailable, match="status 400"):
            await embedder.embed(["one", "two"])


@pytest.mark.req("EMB-01")
async def test_lm_studio_is_asked_for_its_model_once_and_keeps_it(server: VectorServer, tmp_path: Path) -> None:
    async with connected("lmstudio", server.url, model="", folder=tmp_path) as embedder:
        assert embedder.model.name == ""
        await embedder.embed(["one"])
        await embedder.embed(["two"])
        assert embedder.model.name == "text-embedding-nomic-embed-text-v1.5"
    assert [asked.path for asked in server.asked] == ["/v1/models", "/v1/embeddings", "/v1/embeddings"]
    assert server.texts == ["search_document: one", "search_document: two"]

    server.models.insert(0, "bge-m3")
    async with connected("lmstudio", server.url, model="", folder=tmp_path) as embedder:
        assert embedder.model.name == "text-embedding-nomic-embed-text-v1.5"
        await embedder.embed(["three"])
    assert len(server.asked) == 4

    server.behave = lambda asked: server.answer(asked) if asked.path == "/v1/models" else (404, {})
    async with connected("lmstudio", server.url, model="", folder=tmp_path) as embedder:
        with pytest.raises(EmbeddingsUnavailable, match="does not have the model"):
            await embedder.embed(["four"])
        assert embedder.model.name == "text-embedding-nomic-embed-text-v1.5"
    server.behave = server.answer
    async with connected("lmstudio", server.url, model="", folder=tmp_path) as embedder:
        await embedder.embed(["five"])
        assert embedder.model.name == "bge-m3"


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("note", [b"", b"[]", b'{"model": 3}', b"\xff\xfe"])
async def test_a_damaged_note_of_the_model_is_written_anew(server: VectorServer, tmp_path: Path, note: bytes) -> None:
    file = tmp_path / "lmstudio-model.json"
    file.write_bytes(note)
    async with connected("lmstudio", server.url, model="", folder=tmp_path) as embedder:
        await embedder.embed(["one"])
    assert json.loads(file.read_bytes()) == {"model": "text-embedding-nomic-embed-text-v1.5"}


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("listed", [{"data": [{"id": "some-chat-model"}]}, {"data": []}, {"models": 1}, [], "what"])
async def test_a_server_without_a_model_for_vectors_says_so(server: VectorServer, listed: object) -> None:
    server.behave = lambda _asked: (200, listed)
    async with connected("lmstudio", server.url, model="") as embedder:
        with pytest.raises(EmbeddingsUnavailable) as caught:
            await embedder.embed(["one"])
    assert "EMBEDDING_MODEL" in str(caught.value.hint)


GOOD = [[1.0] * 8]
WRONG: list[object] = [
    b"not json",
    b"",
    b"[" * 100_000,
    {},
    [],
    None,
    {"embeddings": None, "data": None},
    {"embeddings": [], "data": []},
    {"embeddings": GOOD * 2, "data": [{"index": 0, "embedding": GOOD[0]}, {"index": 1, "embedding": GOOD[0]}]},
    {"embeddings": [[]], "data": [{"embedding": []}]},
    {"embeddings": [["1"] * 8], "data": [{"embedding": ["1"] * 8}]},
    {"embeddings": [None], "data": [{"embedding": None}]},
    {"embeddings": [GOOD], "data": [{"embedding": GOOD}]},
    {"embeddings": [[float("nan")] * 8], "data": [{"embedding": [float("inf")] * 8}]},
    {"embeddings": [[True] * 8], "data": [{"index": 7, "embedding": GOOD[0]}]},
    {"embeddings": {"0": GOOD}, "data": [GOOD[0]]},
    {"embeddings": [[10**400] * 8], "data": [{"index": "0", "embedding": GOOD[0]}]},
]


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("provider", ["ollama", "compatible"])
async def test_a_wrong_answer_is_a_sentence_and_the_next_right_one_is_taken(
    server: VectorServer, provider: EmbeddingProvider
) -> None:
    async with connected(provider, server.url) as embedder:
        for wrong in WRONG:
            server.behave = lambda _asked, wrong=wrong: (200, wrong)
            with pytest.raises(EmbeddingsUnavailable, match="something other than vectors"):
                await embedder.embed(["one"])
        server.behave = server.answer
        assert (await embedder.embed(["one"])).shape == (1, 8)


@pytest.mark.req("EMB-01")
async def test_ragged_rows_and_rows_of_very_large_numbers_are_told_apart(server: VectorServer) -> None:
    async with connected("ollama", server.url) as embedder:
        server.behave = lambda _asked: (200, {"embeddings": [[1.0, 2.0], [1.0]]})
        with pytest.raises(EmbeddingsUnavailable):
            await embedder.embed(["one", "two"])
        server.behave = lambda _asked: (200, {"embeddings": [[3e300, 4e300], [0, 0]]})
        np.testing.assert_allclose(await embedder.embed(["one", "two"]), [[0.6, 0.8], [0, 0]])


@pytest.mark.req("EMB-01")
async def test_a_dimension_never_changes_while_the_process_lives(server: VectorServer) -> None:
    async with connected("ollama", server.url) as embedder:
        await embedder.embed(["one"])
        server.dimension = 12
        with pytest.raises(EmbeddingsUnavailable, match="12 numbers instead of 8"):
            await embedder.embed(["two"])


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize(
    ("status", "says", "hint"),
    [
        (401, "refused the key", "OPENAI_API_KEY"),
        (403, "refused the key", "EMBEDDING_API_KEY"),
        (404, "does not have the model", "EMBEDDING_MODEL"),
        (429, "no more requests", "Wait"),
        (302, "status 302", "EMBEDDING_MODEL"),
        (503, "status 503", "EMBEDDING_MODEL"),
    ],
)
async def test_a_refusal_says_what_to_do_and_never_shows_the_key_or_the_text(
    server: VectorServer, caplog: pytest.LogCaptureFixture, status: int, says: str, hint: str
) -> None:
    caplog.set_level(logging.DEBUG)
    server.behave = lambda asked: (status, {"error": {"message": f"{asked.headers['authorization']} {asked.texts}"}})
    async with connected("openai", server.url) as embedder:
        with pytest.raises(EmbeddingsUnavailable, match=says) as caught:
            await embedder.embed(["my canary text"])
    everything = f"{caught.value} {caught.value.hint} {caught.value.__cause__!r} {caplog.text}"
    assert hint in everything
    assert KEY not in everything
    assert "canary" not in everything


@pytest.mark.req("EMB-01")
async def test_a_missing_model_at_ollama_names_the_command_that_gets_it(server: VectorServer) -> None:
    server.behave = lambda _asked: (404, {"error": "model not found"})
    async with connected("ollama", server.url, model="nomic-embed-text") as embedder:
        with pytest.raises(EmbeddingsUnavailable) as caught:
            await embedder.embed(["one"])
    assert caught.value.hint == "Get it with: ollama pull nomic-embed-text"


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize(
    "bytes_sent",
    [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{", b"HTTP/1.1 200 OK\r\n"],
)
async def test_a_connection_that_breaks_is_a_sentence(server: VectorServer, bytes_sent: bytes) -> None:
    server.behave = lambda _asked: bytes_sent
    async with connected("ollama", server.url) as embedder:
        with pytest.raises(EmbeddingsUnavailable, match="broke"):
            await embedder.embed(["one"])


@pytest.mark.req("EMB-01")
async def test_a_connection_that_was_closed_meanwhile_is_made_again(server: VectorServer) -> None:
    def once(_asked: Asked) -> bytes:
        server.behave = server.answer
        return b""

    async with connected("ollama", server.url) as embedder:
        server.behave = once
        assert (await embedder.embed(["one"])).shape == (1, 8)
    assert server.texts == ["one", "one"]


@pytest.mark.req("EMB-01")
async def test_an_answer_without_end_is_not_read_to_its_end(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annabelle.embeddings.http_embedder._LARGEST_ANSWER", 100_000)
    server.behave = lambda _asked: (200, b'{"embeddings": [[1.0]]}' + b" " * 200_000)
    async with connected("ollama", server.url) as embedder:
        with pytest.raises(EmbeddingsUnavailable, match="something other than vectors"):
            await embedder.embed(["one"])


@pytest.mark.req("EMB-01")
async def test_a_slow_server_is_waited_for_only_so_long_and_then_left_alone_for_a_while(server: VectorServer) -> None:
    clock = Clock()
    async with connected("ollama", server.url, timeout=1, clock=clock) as embedder:
        server.gate.clear()
        with pytest.raises(EmbeddingsUnavailable, match="within 1 seconds"):
            await embedder.embed(["one"])
        server.gate.set()
        clock.now += 14
        for _ in range(5):
            with pytest.raises(EmbeddingsUnavailable, match="within 1 seconds"):
                await embedder.embed(["two"])
        assert "two" not in server.texts
        clock.now += 2
        assert (await embedder.embed(["three"])).shape == (1, 8)
        assert (await embedder.embed(["four"])).shape == (1, 8)


@pytest.mark.req("EMB-01")
async def test_a_server_that_was_down_is_tried_by_one_caller_while_the_others_do_not_wait(server: VectorServer) -> None:
    clock = Clock()
    async with connected("ollama", server.url, clock=clock) as embedder:
        server.behave = lambda _asked: (503, {})
        with pytest.raises(EmbeddingsUnavailable):
            await embedder.embed(["one"])
        server.behave = server.answer
        server.gate.clear()
        clock.now += 60
        trying = asyncio.create_task(embedder.embed(["two"]))
        assert await asyncio.to_thread(server.wait_for, "two")
        with pytest.raises(EmbeddingsUnavailable):
            await embedder.embed(["three"])
        server.gate.set()
        assert (await trying).shape == (1, 8)
        assert (await embedder.embed(["four"])).shape == (1, 8)


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "compatible"])
async def test_a_server_that_does_not_run_is_found_once_it_does(provider: EmbeddingProvider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with connected(provider, f"http://127.0.0.1:{port}") as embedder:
        with pytest.raises(EmbeddingsUnavailable, match=f"does not answer at 127.0.0.1:{port}") as caught:
            await embedder.embed(["one"])
        assert "EMBEDDING_PROVIDER=embedded" in str(caught.value.hint)
        with VectorServer(port=port):
            assert (await embedder.embed(["one"])).shape == (1, 8)


@pytest.mark.req("EMB-01")
async def test_a_proxy_of_the_environment_is_not_used_on_loopback(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with connected("ollama", server.url) as embedder:
        assert (await embedder.embed(["one"])).shape == (1, 8)


@pytest.mark.req("EMB-01")
async def test_a_cancelled_request_leaves_the_embedder_usable(server: VectorServer) -> None:
    async with connected("ollama", server.url, clock=Clock()) as embedder:
        server.gate.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await embedder.embed(["one"])
        server.gate.set()
        assert (await embedder.embed(["two"])).shape == (1, 8)
