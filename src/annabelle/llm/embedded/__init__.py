"""The engine inside: a small model that answers with no key, no server and no network (LLM-03)."""

from __future__ import annotations

import os

# Read once, when the engine's library is loaded. Its threads otherwise spin while they wait for each other: on a busy
# machine that doubles the CPU time of every answer.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
