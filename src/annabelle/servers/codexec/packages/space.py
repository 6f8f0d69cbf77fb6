"""The disk that packages may take: those of one environment, and all together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import TooLarge
from annabelle.servers.codexec.config import PackageLimits
from annabelle.servers.codexec.disk import Disk, used_by
from annabelle.servers.codexec.folders import Folders

_MOST_FILES = 200_000
_MB = 1_048_576


@dataclass(frozen=True, slots=True)
class Space:
    """Says how much there is left, and what to do when there is nothing. Its methods block; call them in a thread."""

    folders: Folders
    limits: PackageLimits

    def left(self, target: Path) -> Disk:
        """What an environment may grow to now; raises when there is no room at all."""
        own, total = self._used(target)
        if own >= self.limits.bytes:
            raise self._one_full(f"The packages here take {_mb(own)} already", target)
        if total >= self.limits.total_bytes:
            raise self._all_full(f"All packages together take {_mb(total)} already")
        return Disk(target, min(self.limits.bytes, self.limits.total_bytes - total + own), _MOST_FILES)

    def over(self, target: Path) -> bool:
        own, total = self._used(target)
        return own > self.limits.bytes or total > self.limits.total_bytes

    def refusal(self, named: str, target: Path) -> TooLarge:
        """What is said of packages that did not fit, once they are gone again."""
        own, total = self._used(target)
        if self.limits.total_bytes - total < self.limits.bytes - own:
            return self._all_full(f"{named} is not installed, it does not fit: all packages together take {_mb(total)}")
        return self._one_full(f"{named} is not installed, it does not fit: the packages here take {_mb(own)}", target)

    def _used(self, target: Path) -> tuple[int, int]:
        own = used_by([target]).bytes
        return own, own + used_by(one for one in self.folders.environments() if one != target).bytes

    def _one_full(self, said: str, target: Path) -> TooLarge:
        lasting = self.folders.lasting(target)
        clear = f"delete the folder {target.name} in data/codexec/packages, or " if lasting else ""
        return TooLarge(
            f"{said}, and {_mb(self.limits.bytes)} is what they may take.",
            hint="Take a smaller package, or install it into a new session: start_session, then its session_id. "
            f"The person can {clear}raise CODEXEC_MAX_PACKAGES_MB.",
        )

    def _all_full(self, said: str) -> TooLarge:
        return TooLarge(
            f"{said}, and {_mb(self.limits.total_bytes)} is what they may take.",
            hint="Close sessions you are done with, or delete scripts that have packages and are not needed. "
            "The person can delete folders in data/codexec/packages, or raise CODEXEC_MAX_PACKAGES_TOTAL_MB.",
        )


def _mb(size: int) -> str:
    return f"{size / _MB:,.0f} MB"
