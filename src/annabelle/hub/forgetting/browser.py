"""A browser that runs writes its profile again from memory; so it is closed before its files are looked through."""

from __future__ import annotations

from annabelle.core.home import Home
from annabelle.toolbox.facade import Toolbox

_SERVER = "web"


async def close_browser(home: Home, toolbox: Toolbox) -> None:
    """Start the browser's server afresh, which ends every browser of it; nothing to do where none was ever used."""
    running = any(server.name == _SERVER and server.available for server in toolbox.servers())
    if running and home.browser_profiles.is_dir():
        await toolbox.restart(_SERVER)
