"""What some models want to read before a text, to know whether it is searched with or searched for."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.embeddings.embedder import ModelName


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The words before a query and before everything else."""

    query: str = ""
    document: str = ""


_SEARCHING = Prefixes(query="Represent this sentence for searching relevant passages: ")
# By a part of the model's name, as its makers ask for it; without these the order of results suffers noticeably.
_KNOWN = {
    "nomic-embed": Prefixes("search_query: ", "search_document: "),
    "multilingual-e5": Prefixes("query: ", "passage: "),
    "e5-small": Prefixes("query: ", "passage: "),
    "e5-base": Prefixes("query: ", "passage: "),
    "e5-large": Prefixes("query: ", "passage: "),
    "embeddinggemma": Prefixes("task: search result | query: ", "title: none | text: "),
    "embedding-gemma": Prefixes("task: search result | query: ", "title: none | text: "),
    "qwen3-embedding": Prefixes(query="Instruct: Given a question, find the passages that answer it\nQuery: "),
    "mxbai-embed-large": _SEARCHING,
    "bge-small-en": _SEARCHING,
    "bge-base-en": _SEARCHING,
    "bge-large-en": _SEARCHING,
    "snowflake-arctic-embed2": Prefixes(query="query: "),
    "snowflake-arctic-embed": _SEARCHING,
}


def prefixes_of(model: ModelName) -> Prefixes:
    """The prefixes of a model; none for one that is not known to want any."""
    name = model.name.lower().replace("_", "-")
    return next((prefixes for part, prefixes in _KNOWN.items() if part in name), Prefixes())
