"""Which tools an agent may use: allow globs, deny globs, deny wins (POL-01)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """`*` is the only wildcard, so a name with brackets or question marks means itself."""
    return re.compile(".*".join(re.escape(part) for part in glob.split("*")), re.DOTALL)


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(_pattern(glob).fullmatch(name) for glob in globs)


@dataclass(frozen=True, slots=True)
class AgentPolicy:
    """What one agent may call. `allowed=None` (not configured) is every tool; an empty tuple is none (I-06)."""

    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    within: AgentPolicy | None = None
    """What this one lies inside of: asked about every name, so it is never wider, whatever its globs say (AGT-04)."""

    def narrowed(self, allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> AgentPolicy:
        """A policy for somebody who works for the one with this policy."""
        return AgentPolicy(allowed, denied, within=self)

    def permits(self, name: str) -> bool:
        """Whether a tool of this exposed name may be seen and called."""
        if _matches(name, self.denied) or (self.within is not None and not self.within.permits(name)):
            return False
        return self.allowed is None or _matches(name, self.allowed)
