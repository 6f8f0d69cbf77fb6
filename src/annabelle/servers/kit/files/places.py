"""Decides what a path means: a spot in the workspace, a spot in a granted folder, or nowhere a tool goes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.forbidden import below, fold
from annabelle.servers.kit.files.grants import Grant, Grants
from annabelle.servers.kit.files.spelling import spell

Need = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Root:
    """A folder (or one granted file) that may be used, by its real path. `dotless`: it holds the user's whole home, of
    which nobody means the hidden files: keys, settings and what programs keep for themselves."""

    path: Path
    writable: bool
    workspace: bool
    dotless: bool = False


@dataclass(frozen=True, slots=True)
class Spot:
    """A place below a root. Only its names are known: what is there is found out while walking, without links."""

    root: Root
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.root.path.joinpath(*self.names)

    @property
    def shown(self) -> str:
        """How to speak of it: from the workspace, or in full."""
        return "/".join(self.names) or "." if self.root.workspace else str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    def child(self, name: str) -> Spot:
        return Spot(self.root, (*self.names, name))


class Places:
    """The map of what may be touched."""

    def __init__(self, config: FilesConfig) -> None:
        self._user_home = config.user_home
        self._written = config.workspace
        self.forbidden = config.forbidden()
        self.grants = Grants(config.grants_file, self.forbidden)
        self.workspace = Root(Path(os.path.realpath(config.workspace)), writable=True, workspace=True)
        config.refuse_bad_workspace()

    def find(self, path: str, need: Need, field: str = "path") -> Spot:
        """The spot a path means, or why it is out of bounds."""
        spot = self.locate(path, field)
        if isinstance(spot, NotAllowed):
            raise spot
        if need == "write" and not spot.root.writable:
            raise NotAllowed(
                f"{spot.shown} is granted for reading only.",
                hint="filer_request_grant with permission read-write tells the user what to change.",
                field=field,
            )
        return spot

    def locate(self, path: str, field: str = "path") -> Spot | NotAllowed:
        """The same, with the refusal as an answer. Only a path that can not be spelled at all raises."""
        if not path.strip():
            raise InvalidArguments("The path is empty.", field=field)
        absolute, names = spell(self._expand(path), field)
        if not absolute:
            return self._allowed(Spot(self.workspace, names), field)
        full = Path("/", *names)
        for written in (self._written, self.workspace.path):
            inside = below(full, written)
            if inside is not None:
                return self._allowed(Spot(self.workspace, inside), field)
        if self.forbidden.covers(full):
            return _forbidden(str(full), field)
        for grant in self.grants.current():
            for written in (grant.path, grant.real):
                inside = below(full, written)
                if inside is not None:
                    return self._allowed(Spot(self.root_of(grant), inside), field)
        return NotAllowed(
            f"{full} is outside the workspace and not granted.",
            hint="Use a path in the workspace, or filer_request_grant to learn what the user has to allow.",
            field=field,
        )

    def root_of(self, grant: Grant) -> Root:
        homes = (self._user_home, Path(os.path.realpath(self._user_home)))
        dotless = any(fold(home)[: len(grant.real.parts)] == fold(grant.real) for home in homes)
        return Root(grant.real, grant.permission == "read-write", workspace=False, dotless=dotless)

    def full(self, path: str) -> str:
        """An absolute path as it would stand in a grant."""
        return str(Path("/", *spell(self._expand(path))[1]))

    def can_be_granted(self, path: str) -> bool:
        """Whether the user could open this path: it is absolute, and not in a protected place by any name."""
        absolute, names = spell(self._expand(path))
        full = Path("/", *names)
        return absolute and not any(self.forbidden.covers(place) for place in (full, Path(os.path.realpath(full))))

    def forbids(self, spot: Spot) -> bool:
        """Whether a spot is a forbidden place. The workspace may lie inside one (the home), and is then exempt."""
        if spot.root.dotless and any(name.startswith(".") for name in spot.names):
            return True
        if not spot.root.workspace:
            return self.forbidden.covers(spot.path)
        steps = range(1, len(spot.names) + 1)
        return any(self.forbidden.is_place(spot.root.path.joinpath(*spot.names[:count])) for count in steps)

    def holds_roots(self, spot: Spot) -> bool:
        """Whether moving this spot would move a forbidden place, the workspace or a granted folder with it."""
        folded = fold(spot.path)
        roots = [self.workspace.path, *(grant.real for grant in self.grants.current())]
        # What is hidden in a folder would no longer be so under another root.
        return (
            spot.root.dotless
            or self.forbidden.below(spot.path)
            or any(fold(root)[: len(folded)] == folded for root in roots)
        )

    def _allowed(self, spot: Spot, field: str) -> Spot | NotAllowed:
        return _forbidden(spot.shown, field) if self.forbids(spot) else spot

    def _expand(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            return f"{self._user_home}{path[1:]}"
        return path


def _forbidden(shown: str, field: str) -> NotAllowed:
    return NotAllowed(
        f"{shown} is in a protected place (keys, settings, the system or Annabelle's own data).",
        hint="A grant of the whole home opens no hidden file, and none opens keys or the system.",
        field=field,
    )
