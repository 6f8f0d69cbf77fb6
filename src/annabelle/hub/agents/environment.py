"""What a thinker process may know: its own settings, the keys of model providers, the database, no more."""

from __future__ import annotations

from collections.abc import Mapping

from annabelle.core.home import HOME_VARIABLE, Home
from annabelle.core.settings import Settings

_PLAIN = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
# A provider may only be reachable through the machine's proxy and its certificates.
_NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
_OWNERS_ALONE = frozenset({"ANNABELLE_TOKEN"})
_SETTINGS = (
    "thinker_", "llm_", "groq_", "anthropic_", "openai_", "openrouter_", "ollama_", "lmstudio_", "compatible_",
    "embedded_", "model_", "retry_", "user_", "embedding_", "tool_selector_", "history_", "agent_session_",
    "agent_history_", "log_level", "database_url", "sqlite_synchronous",
)  # fmt: skip


def bare_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the process itself is started with: nothing secret, so a warm spare can wait with it."""
    return {name: environment[name] for name in _PLAIN if name in environment}


def thinker_environment(environment: Mapping[str, str], home: Home) -> dict[str, str]:
    """What a thinker is given when it learns which agent it is."""
    wanted = {name.upper() for name in Settings.model_fields if name.startswith(_SETTINGS)} | set(_NETWORK)
    chosen = {
        name: value
        for name, value in environment.items()
        if (name in wanted or name.upper() in wanted or name.startswith("ANNABELLE_")) and name not in _OWNERS_ALONE
    }
    return {**bare_environment(environment), **chosen, HOME_VARIABLE: str(home.root)}
