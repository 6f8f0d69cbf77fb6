"""The shapes of the fixtures that speak to servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

from mcp import Client

Mode = Literal["auto", "legacy"]
Connect = Callable[..., AbstractAsyncContextManager[Client]]
CallTool = Callable[..., Awaitable[Any]]
WriteGrants = Callable[[dict[Path, str]], None]

SAMPLE = str(Path(__file__).parent / "sample_server.py")
