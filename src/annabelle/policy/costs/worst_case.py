"""How often a model can be asked for one message, whatever goes wrong (CST-10)."""

from __future__ import annotations

from typing import Final

from annabelle.core.contract import AgentProfile
from annabelle.core.settings import Settings
from annabelle.durable.retry import BACKOFF_RETRIES, IMMEDIATE_RETRIES

GUARD_RETRIES: Final = 1
"""An answer that claims what was not done is asked for once more."""
COMPACTIONS: Final = 1
SUMMARIES_OF_THE_PAST: Final = 1


def tries_per_step(fallbacks: int) -> int:
    """One step is tried anew as often as the most patient kind of error allows, each time down the whole chain."""
    return (1 + IMMEDIATE_RETRIES + max(BACKOFF_RETRIES.values())) * (1 + fallbacks)


def worst_case_model_calls(profile: AgentProfile, settings: Settings) -> int:
    """Every step and the guard's retry, tried as often as can be; thinking before each; what is summed up after."""
    chain = 1 + len([name for name in settings.llm_fallbacks.split(",") if name.strip()])
    steps = profile.limits.max_steps + GUARD_RETRIES
    thinking = steps * chain if profile.thinking.enabled and profile.thinking.model else 0
    summaries = (COMPACTIONS + SUMMARIES_OF_THE_PAST) * chain
    return steps * tries_per_step(chain - 1) + thinking + summaries
