"""Puts the parts of the sessions together."""

from __future__ import annotations

from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.embeddings import Embedder
from annabelle.thinker.context.clock import zone
from annabelle.thinker.engine import Engine
from annabelle.thinker.session.archivist import Archivist
from annabelle.thinker.session.compaction import CompactionRules, Compactor
from annabelle.thinker.session.conversations import Conversations, Earlier
from annabelle.thinker.session.port import SessionStore
from annabelle.thinker.session.shelf import Shelf
from annabelle.thinker.session.summariser import Summariser


def conversations(
    store: SessionStore,
    engine: Engine,
    summariser: Summariser,
    embedder: Embedder,
    settings: Settings,
    trace: TraceFile,
) -> Conversations:
    """The sessions of one agent. Made before the engine is launched: it has to know how to sum up."""
    return Conversations(
        store,
        Compactor(store, engine, summariser, CompactionRules.from_settings(settings), trace),
        Archivist(store, summariser, settings.agent_session_timeout, trace),
        Earlier(Shelf(embedder), settings.agent_history_summary_count, zone(settings.user_timezone)),
    )
