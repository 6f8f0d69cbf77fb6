"""The engine inside: a small model that answers with no key, no server and no network (LLM-03)."""
