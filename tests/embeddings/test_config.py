"""Who makes the vectors: from the settings or a server's environment, with the same result."""

from __future__ import annotations

import subprocess
import sys

import pytest

from annabelle.core.errors import ConfigMistake, Unavailable
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.embeddings import EmbeddingConfig, EmbeddingsUnavailable, make_embedder
from annabelle.embeddings.config import VARIABLES
from support.timing import seconds

KEY = "sk-proj-abcdefghijklmnop"


def both(home: Home) -> EmbeddingConfig:
    """The config by either way, which must agree."""
    by_environment = EmbeddingConfig.from_environment()
    assert EmbeddingConfig.from_settings(load_settings(home)) == by_environment
    return by_environment


@pytest.mark.req("EMB-01")
def test_the_embedded_model_is_the_default(home: Home) -> None:
    assert both(home) == EmbeddingConfig("embedded", "l2_supercat_256", "", None, 10)


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize(
    ("variables", "model", "address", "key"),
    [
        ({"EMBEDDING_PROVIDER": "ollama"}, "nomic-embed-text", "http://127.0.0.1:11434", None),
        (
            {"EMBEDDING_PROVIDER": "ollama", "OLLAMA_BASE_URL": "http://box:1/v1/", "EMBEDDING_MODEL": "bge-m3"},
            "bge-m3",
            "http://box:1",
            None,
        ),
        ({"EMBEDDING_PROVIDER": "lmstudio"}, "", "http://127.0.0.1:1234/v1", None),
        (
            {"EMBEDDING_PROVIDER": "lmstudio", "LMSTUDIO_BASE_URL": "http://a:1", "EMBEDDING_BASE_URL": "http://b:2"},
            "",
            "http://b:2/v1",
            None,
        ),
        (
            {"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": KEY},
            "text-embedding-3-small",
            "https://api.openai.com/v1",
            KEY,
        ),
        (
            {"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": "another-key", "EMBEDDING_API_KEY": KEY},
            "text-embedding-3-small",
            "https://api.openai.com/v1",
            KEY,
        ),
        (
            {
                "EMBEDDING_PROVIDER": "compatible",
                "COMPATIBLE_BASE_URL": "http://box/api/v2",
                "COMPATIBLE_API_KEY": KEY,
                "EMBEDDING_MODEL": "gte",
            },
            "gte",
            "http://box/api/v2",
            KEY,
        ),
        ({"EMBEDDING_PROVIDER": "embedded", "EMBEDDING_MODEL": "bge-m3"}, "l2_supercat_256", "", None),
    ],
)
def test_each_provider_has_its_usual_model_address_and_key(
    home: Home, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], model: str, address: str, key: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    config = both(home)
    assert (config.provider, config.model, config.base_url) == (variables["EMBEDDING_PROVIDER"], model, address)
    assert (config.api_key.get_secret_value() if config.api_key else None) == key
    assert KEY not in repr(config)
    assert set(variables) <= set(VARIABLES)


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMBEDDING_PROVIDER", "huggingface"),
        ("EMBEDDING_TIMEOUT_SECONDS", "soon"),
        ("EMBEDDING_TIMEOUT_SECONDS", "0"),
        ("EMBEDDING_TIMEOUT_SECONDS", "inf"),
    ],
)
def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigMistake, match=name) as caught:
        EmbeddingConfig.from_environment()
    assert caught.value.field == name


@pytest.mark.req("EMB-01")
@pytest.mark.parametrize(
    ("variables", "hint"),
    [
        ({"EMBEDDING_PROVIDER": "none"}, "EMBEDDING_PROVIDER=embedded"),
        ({"EMBEDDING_PROVIDER": "openai"}, "OPENAI_API_KEY"),
        ({"EMBEDDING_PROVIDER": "openai", "OPENAI_API_KEY": f"“{KEY}”"}, "Copy it again"),
        ({"EMBEDDING_PROVIDER": "compatible"}, "COMPATIBLE_BASE_URL"),
        ({"EMBEDDING_PROVIDER": "ollama", "EMBEDDING_BASE_URL": "localhost:11434"}, "EMBEDDING_BASE_URL"),
        ({"EMBEDDING_PROVIDER": "ollama", "EMBEDDING_BASE_URL": "http://box:what"}, "EMBEDDING_BASE_URL"),
        ({"EMBEDDING_PROVIDER": "ollama", "EMBEDDING_BASE_URL": "http://[broken"}, "EMBEDDING_BASE_URL"),
    ],
)
async def test_what_can_not_work_says_so_at_the_call_and_not_before(
    home: Home, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], hint: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    embedder = make_embedder(EmbeddingConfig.from_environment(), home.embedding_cache)
    with pytest.raises(EmbeddingsUnavailable) as caught:
        await embedder.embed(["hello"])
    assert isinstance(caught.value, Unavailable)
    assert hint in str(caught.value.hint)
    assert KEY not in caught.value.message + str(caught.value.hint)
    await embedder.close()


@pytest.mark.req("EMB-01")
def test_the_room_is_cheap_to_import_until_an_embedder_is_made() -> None:
    program = """
import sys
from annabelle.embeddings import EmbeddingConfig, make_embedder
heavy = {"numpy", "tokenizers", "httpx2", "wordllama", "sqlalchemy"}
print(sorted(heavy & set(sys.modules)))
make_embedder(EmbeddingConfig("none"), None)
print(sorted(heavy & set(sys.modules)))
make_embedder(EmbeddingConfig(), None)
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds(60), check=True
    )
    assert done.stdout.splitlines() == ["[]", "[]", "['numpy', 'tokenizers']"]
