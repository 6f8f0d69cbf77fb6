"""Checks of what turns text into vectors, and of where vectors and memories are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from annabelle.core.network_access import trust_store
from annabelle.core.result_text import format_size
from annabelle.embeddings.config import EmbeddingConfig
from annabelle.hub.diagnosis.check import MEGABYTE, Check, DiagnosisContext, Problem
from annabelle.hub.model_servers import name_providers
from annabelle.llm.providers import is_loopback
from annabelle.store.file_size import measure_file, measure_folder

CACHE_BYTES: Final = 10 * MEGABYTE
MEMORY_BYTES: Final = 50 * MEGABYTE
_OLLAMA, _SECONDS = "ollama", 3.0


async def check_ollama(context: DiagnosisContext) -> list[Problem]:
    import httpx2 as httpx  # noqa: PLC0415  loading it takes long, and most homes do not use Ollama

    found: list[Problem] = []
    for address in dict.fromkeys(_ollama_addresses(context)):
        try:
            async with httpx.AsyncClient(
                verify=trust_store(address), trust_env=not is_loopback(address), timeout=_SECONDS
            ) as client:
                (await client.get(f"{address}/api/tags")).raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL):
            text = f"Ollama does not answer at {address}."
            found.append(Problem("warning", text, "Start it, or choose another model: annabelle init", address))
    return found


def _ollama_addresses(context: DiagnosisContext) -> Iterator[str]:
    """Where Ollama is expected, if anything is set to use it."""
    settings = context.settings
    if settings.embedding_provider == _OLLAMA:
        yield EmbeddingConfig.from_settings(settings).base_url
    by_default = settings.guardian_enabled and "granite" in settings.guardian_provider and not settings.guardian_model
    if by_default or _OLLAMA in name_providers(settings, context.agents):
        yield settings.ollama_base_url.rstrip("/").removesuffix("/v1")


async def check_cache(context: DiagnosisContext) -> list[Problem]:
    size = measure_folder(context.home.embedding_cache)
    if size < CACHE_BYTES:
        return []
    text = f"The cache of vectors takes {format_size(size)}."
    return [Problem("info", text, "Nothing needs to be done: it stays below 200 MB by itself.")]


async def check_memory(context: DiagnosisContext) -> list[Problem]:
    file: Path = context.settings.memory_db_path or context.home.memory_file
    size = measure_file(file)
    if context.settings.database_url is not None or size < MEMORY_BYTES:
        return []
    text = f"The memory takes {format_size(size)}."
    return [Problem("info", text, "Tidy it at the terminal, if you like: annabelle memory tidy")]


CHECKS: Final = (
    Check(
        "ollama-connectivity",
        "embedding",
        ("warning",),
        f"something is set to use Ollama, and `/api/tags` does not answer within {_SECONDS:g} s",
        check_ollama,
    ),
    Check(
        "embedding-cache-size",
        "embedding",
        ("info",),
        f"the cache of vectors takes {CACHE_BYTES // MEGABYTE} MB or more",
        check_cache,
    ),
    Check(
        "memory-db-size",
        "embedding",
        ("info",),
        f"the memory's file takes {MEMORY_BYTES // MEGABYTE} MB or more",
        check_memory,
    ),
)
