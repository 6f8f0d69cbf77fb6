"""Allows a secret only in pages of the sites that its vault item names (POL-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annabelle.core.errors import NotAllowed, RetryByModel
from annabelle.servers.kit import current_call
from annabelle.servers.web.navigate import same_site
from annabelle.servers.web.page_events import NEW_SNAPSHOT

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Locator

    from annabelle.servers.web.tab import BrowserTab


def holds_secret(text: str) -> bool:
    return any(secret in text for secret in current_call().secrets)


async def checked_field(tab: BrowserTab, target: Locator, text: str) -> Locator | ElementHandle:
    """Return the element this text may be typed into, or raise NotAllowed.

    For a secret, the element is pinned to its document before the URL is checked: if the page navigates meanwhile, the
    element is gone and nothing is typed. Both page and frame must match, so neither an unknown frame in a known page
    nor a known frame in an unknown page gets the secret. For items without a site, policy has asked the person.
    """
    call = current_call()
    bounds = [call.secret_sites.get(secret, ()) for secret in call.secrets if secret in text]
    if not any(bounds):
        return target
    element = await tab.perform("Looking the field up", target.element_handle(timeout=tab.timeouts.action * 1000))
    frame = await tab.perform("Looking the field up", element.owner_frame())
    if frame is None:
        raise RetryByModel("The field is no longer on the page.", hint=NEW_SNAPSHOT)
    for sites in filter(None, bounds):
        for url in (frame.url, tab.page.url):
            if not any(same_site(url, site) for site in sites):
                raise NotAllowed(
                    f"This secret belongs to {' and '.join(sites)}, and the page is of another site.",
                    hint="Tell the user. If it is right, they add the site's address to the item in their vault.",
                )
    return element
