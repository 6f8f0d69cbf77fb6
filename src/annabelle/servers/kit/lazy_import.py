"""Keeps the SDK from loading its HTTP half: a stdio server needs neither a web framework nor an OAuth client.

The packages `mcp` and `mcp.server` import everything they offer as soon as anything in them is touched, which costs
a server half a second and 20 MB. Here they are put in place without running their own code; whoever asks one of them
for a name it does not have yet (`from mcp import Client`) runs that code then, and finds everything as usual.

Importing this module does it, so it comes before the first import of the SDK; `kit/__init__.py` sees to that.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


class DeferredPackage(ModuleType):
    """A package whose submodules can be imported before its own code has run."""

    def __getattr__(self, name: str) -> object:
        spec = self.__spec__
        if name.startswith("__") or spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]  an ordinary package from here on
        spec.loader.exec_module(self)
        return getattr(self, name)


class _DeferredModule(ModuleType):
    """Stands for a module that is imported on first use."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def deferred_module(name: str) -> ModuleType:
    """A module that is imported on first use, because importing it would make the start slow."""
    return _DeferredModule(name)


def defer_packages(*packages: str) -> None:
    """Put packages in place, outermost first. One that is already there, or cannot be found, is left as it is."""
    for name in packages:
        if name in sys.modules:
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or spec.submodule_search_locations is None:
            return
        module = importlib.util.module_from_spec(spec)
        module.__class__ = DeferredPackage
        sys.modules[name] = module
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)


defer_packages("mcp", "mcp.server")
