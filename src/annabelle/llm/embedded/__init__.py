"""The embedded engine: a small model that needs no key, server or network (LLM-03)."""

from __future__ import annotations

import os

# Read once, when the library is loaded. Otherwise its threads spin while waiting, which doubles the CPU time of every
# answer on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
