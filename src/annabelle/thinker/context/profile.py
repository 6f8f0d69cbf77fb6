"""What memory keeps in mind of the user in every conversation, as one layer of the prompt (CTX-01)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from annabelle.thinker.context.budget import PROFILE_TOKENS, Fitted, Layer, fit, shortened
from annabelle.thinker.context.tags import USER_PROFILE, element, escaped

_PERSONA = "persona"
_VALUE_TOKENS = 120
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class UserProfile:
    """The profile as `get_profile` returned it; `untrusted` are the paths of fields that others may have written."""

    content: Mapping[str, object] = field(default_factory=dict[str, object])
    untrusted: frozenset[str] = frozenset()

    @classmethod
    def read(cls, structured: Mapping[str, object]) -> UserProfile:
        """From the tool's result, whatever of it is there."""
        content, marked = structured.get("profile"), structured.get("untrusted_fields")
        paths = {str(path) for path in cast("list[object]", marked)} if isinstance(marked, list) else set[str]()
        if not isinstance(content, dict):
            return cls()
        # Without the list of fields, the label of the whole holds for each of them.
        everything = structured.get("trust", "trusted") != "trusted" and not paths
        profile = cast("dict[str, object]", content)
        return cls(profile, frozenset(path for path, _ in _leaves(profile)) if everything else frozenset(paths))

    def persona(self) -> dict[str, object]:
        """Who the agent is, by fields; never from a field that others may have written: those are not instructions."""
        section = self.content.get(_PERSONA)
        if not isinstance(section, dict):
            return {}
        fields = cast("dict[str, object]", section)
        return {name: value for name, value in fields.items() if f"{_PERSONA}.{name}" not in self.untrusted}


def profile_layer(profile: UserProfile) -> Layer:
    """`<user-profile>` with a line per field, and no empty one. What does not fit is left out, line by line."""
    about = {name: value for name, value in profile.content.items() if name != _PERSONA}
    lines = [_line(path, value, profile.untrusted) for path, value in _leaves(about)]
    fitted = fit(lines, PROFILE_TOKENS) if lines else Fitted(())
    if not fitted.pieces:
        return Layer("", 0, fitted.left_out)
    text = element(USER_PROFILE, "\n" + "\n".join(fitted.pieces) + "\n")
    return Layer(text, len(fitted.pieces), fitted.left_out)


def _line(path: str, value: object, untrusted: frozenset[str]) -> str:
    name = path.removeprefix("user.")
    words = ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
    # One line whatever is in it: a value must not look like a field of its own.
    words = shortened(" ".join(words.split()), _VALUE_TOKENS)
    mark = " [untrusted]" if path in untrusted else ""
    return f"{escaped(name)}: {escaped(words)}{mark}"


def _leaves(document: Mapping[str, object], above: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        path = f"{above}.{key}" if above else str(key)
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _leaves(cast("dict[str, object]", value), path, depth + 1)
        elif value not in (None, "", [], {}):
            yield path, value
