"""Vectors that somebody charges for are booked like every model call, and end where the budget ends (CST-09)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pydantic import SecretStr

from annabelle.core.errors import NotAllowed
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, make_embedder
from annabelle.embeddings.metering import EmbeddingMeter, is_charged
from annabelle.hub.security.identities import Identities, authorize_path
from annabelle.store import ledger
from annabelle.store.database import Database
from annabelle.store.ledger import UsageTotal
from hub.cost_house import house
from hub.hubs import HubProcess, fresh_home, wait_for
from support.scripted_model import ScriptedServer
from support.vector_server import Answer, Asked, VectorServer

MODEL = "text-embedding-3-small"
USD_PER_TOKEN = 0.02e-6


@pytest.fixture
def vectors() -> Iterator[VectorServer]:
    """A server that makes vectors and says what it charges for, as OpenAI does."""
    with VectorServer() as server:

        def counting(asked: Asked) -> Answer:
            status, value = server.answer(asked)
            return status, {**cast("dict[str, object]", value), "usage": {"prompt_tokens": 1000 * len(asked.texts)}}

        server.behave = counting
        yield server


def config(server: VectorServer, model: str = MODEL) -> EmbeddingConfig:
    return EmbeddingConfig("openai", model, f"{server.url}/v1", SecretStr("sk-thisisasecretkey1234567890"))


async def by_purpose(database: Database) -> dict[str, UsageTotal]:
    return {total.key: total for total in await database.read(lambda conn: ledger.sum_usage(conn, OWNER, "purpose"))}


@pytest.mark.req("CST-09", "TRU-01")
async def test_vectors_cost_what_their_provider_counted(home: Home, database: Database, vectors: VectorServer) -> None:
    hub = await house(home, database)
    embedder = make_embedder(config(vectors), None, EmbeddingMeter(hub.ledger, "memory"))
    await embedder.embed(["one", "two", "three"])
    await embedder.close()
    total = (await by_purpose(database))["embedding"]
    assert (total.calls, total.open, total.usage.input_tokens, total.unpriced) == (1, 0, 3000, 0)
    assert total.usage.cost_usd == pytest.approx(3000 * USD_PER_TOKEN)
    assert (await hub.standing())[1] == 0


@pytest.mark.req("TRU-01")
@pytest.mark.incident("I-17")
async def test_a_budget_that_is_used_up_ends_vectors_too(home: Home, database: Database, vectors: VectorServer) -> None:
    hub = await house(home, database, budget_day_usd=0.0)
    embedder = make_embedder(config(vectors), None, EmbeddingMeter(hub.ledger, "memory"))
    with pytest.raises(EmbeddingsUnavailable, match="The budget of the day"):
        await embedder.embed(["one"])
    await embedder.close()
    assert vectors.texts == []


@pytest.mark.req("TRU-01")
async def test_a_request_that_fails_counts_as_what_was_reserved_and_an_unknown_model_as_the_dearest(
    home: Home, database: Database, vectors: VectorServer
) -> None:
    hub = await house(home, database)
    vectors.behave = lambda _asked: (503, {})
    embedder = make_embedder(config(vectors, "strange-vectors"), None, EmbeddingMeter(hub.ledger, "memory"))
    with pytest.raises(EmbeddingsUnavailable):
        await embedder.embed(["word " * 100])
    await embedder.close()
    total = (await by_purpose(database))["embedding"]
    assert (total.calls, total.open, total.unpriced) == (1, 0, 1)
    assert total.usage.cost_usd is not None
    assert total.usage.cost_usd > 250 * USD_PER_TOKEN


@pytest.mark.req("CST-09")
def test_vectors_of_this_machine_cost_nothing_and_are_not_booked() -> None:
    here, there = "http://127.0.0.1:9/v1", "https://vectors.example.org/v1"
    assert not is_charged(EmbeddingConfig())
    assert not is_charged(EmbeddingConfig("ollama", "m", here))
    assert not is_charged(EmbeddingConfig("compatible", "m", here))
    assert is_charged(EmbeddingConfig("compatible", "m", there))
    assert is_charged(EmbeddingConfig("openai", "m", here))


@pytest.mark.req("CST-09", "API-01")
def test_a_servers_token_opens_the_ledger_and_nothing_else() -> None:
    identities = Identities("owner-token")
    server = identities.identify(identities.admit_servers().encode())
    authorize_path(server, "/internal/ledger/reserve")
    authorize_path(server, "/internal/ledger/settle")
    for path in ("/internal/ledger/status", "/tools/call", "/message", "/costs", "/agents", "/openapi.json"):
        with pytest.raises(NotAllowed):
            authorize_path(server, path)


@pytest.mark.req("CST-09")
def test_the_memory_server_books_its_vectors_with_the_hub(
    tmp_path: Path, model: ScriptedServer, vectors: VectorServer
) -> None:
    settings = {
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_BASE_URL": f"{vectors.url}/v1",
        "EMBEDDING_API_KEY": "sk-thisisasecretkey1234567890",
        "EMBEDDING_MODEL": MODEL,
    }
    hub = HubProcess(fresh_home(tmp_path), model.openai_url, **settings).start()
    try:
        call = {"name": "memory_store_fact", "arguments": {"fact": "Ada builds an observatory.", "category": "project"}}
        stored = hub.http.post("/tools/call", json=call).json()
        assert not stored["is_error"], stored

        def booked() -> list[dict[str, object]]:
            totals = hub.http.get("/costs", params={"by": "purpose"}).json()["totals"]
            return [total for total in totals if total["key"] == "embedding" and not total["open"]]

        (total,) = wait_for(booked, "vectors in the book")
        assert total["inputTokens"] == 1000 * len(vectors.texts)
        assert total["costUsd"] == pytest.approx(1000 * len(vectors.texts) * USD_PER_TOKEN)
        found = hub.http.post("/tools/call", json={"name": "search_tools", "arguments": {"query": "mail"}}).json()
        assert not found["is_error"], found
        agents = hub.http.get("/costs", params={"by": "agent"}).json()["totals"]
        assert "hub" in [one["key"] for one in agents], "what the hub itself asks for is booked too"
    finally:
        hub.end()
