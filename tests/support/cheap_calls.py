"""One cheap call for each built-in server: what tests and benchmarks ask to see that it answers at all."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CheapCall:
    """`code` is the error's, where the server lacks something on a fresh machine; None where it just works."""

    tool: str
    arguments: dict[str, object] = field(default_factory=dict)
    code: str | None = None


CHEAP: dict[str, CheapCall] = {
    "codexec": CheapCall("list_sessions"),
    "documents": CheapCall("get_document_info", {"path": "none.pdf"}, code="not_found"),
    "everyday": CheapCall("get_time"),
    "filer": CheapCall("list_grants"),
    "gmail": CheapCall("list_labels", code="unavailable"),
    "guardian": CheapCall("get_scan_log"),
    "memory": CheapCall("get_memory_stats"),
    "notes": CheapCall("list_notes"),
    "onepassword": CheapCall("list_vaults", code="unavailable"),
    "searcher": CheapCall("web_fetch", {"url": "http://127.0.0.1:9/"}, code="not_allowed"),
    "telegram": CheapCall("get_me", code="unavailable"),
    "web": CheapCall("browser_close"),
}
