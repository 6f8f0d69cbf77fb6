"""What `op` complains about, as sentences that say what to do. Its own words are not repeated: they may quote."""

from __future__ import annotations

from annabelle.core.errors import AnnabelleError, NotAllowed, NotFound, RetryByModel, TooManyRequests, Unavailable

NOT_SIGNED_IN = "1Password is not connected."
SIGN_IN = "Run: op signin, or set a service account: annabelle config set OP_SERVICE_ACCOUNT_TOKEN"

_SIGNED_OUT = (
    "not currently signed in",
    "not signed in",
    "no account",
    "no accounts",
    "sign in",
    "session expired",
    "invalid token",
    "unauthorized",
    "authentication required",
    "deserialize service account",
    "service account token",
    "authorization prompt",
)
_UNKNOWN = (
    "isn't an item",
    "isn't a vault",
    "isn't a field",
    "isn't a section",
    "could not find",
    "couldn't find",
    "not found",
    "no item",
    "does not have a field",
    "doesn't have a field",
    "could not resolve",
)


def trouble_of(complaint: str) -> AnnabelleError:
    """The error for what the command printed when it failed."""
    said = complaint.lower().replace("’", "'")
    if "rate limit" in said or "too many requests" in said:
        return TooManyRequests("1Password allows no more requests for now.", hint="Try again later.", retry_after=60.0)
    if "more than one" in said:
        return RetryByModel("More than one item has this name.", hint="Name the vault too, or use the item's id.")
    if "permission" in said or "forbidden" in said:
        return NotAllowed("This account of 1Password may not see that.", hint="Its vaults: onepassword_list_vaults.")
    if any(words in said for words in _UNKNOWN):
        return NotFound(
            "1Password has no vault, item or field of this name.",
            hint="Look with onepassword_list_vaults and onepassword_list_items.",
        )
    if any(words in said for words in _SIGNED_OUT):
        return Unavailable(NOT_SIGNED_IN, hint=SIGN_IN)
    return Unavailable("1Password could not do it.", hint="Run it by hand to see why: op vault list")
