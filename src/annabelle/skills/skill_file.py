"""SKILL.md files, in the public format of agentskills.io: parsed, checked, or refused with the reason (SKL-06).

The text is somebody else's. So aliases and deep nesting are refused before anything is built from them, and a file is
never read beyond its limit.
"""

from __future__ import annotations

import math
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

import yaml

from annabelle.core.tools import JsonObject

T = TypeVar("T")

FILE_NAME: Final = "SKILL.md"
MOST_BYTES: Final = 1024 * 1024
MOST_FILES: Final = 1_000
_MOST_HEADER_CHARS: Final = 64 * 1024
_DEEPEST: Final = 20
_NAME_CHARS: Final = 64
_DESCRIPTION_CHARS: Final = 1024
_COMPATIBILITY_CHARS: Final = 500
_MOST_KEYWORDS: Final = 200
_MOST_TOOLS: Final = 100
_MOST_PRIORITY: Final = 100
_MOST_STEPS: Final = 100
_MOST_NUMBER: Final = 2**63
_FENCE: Final = "---"
_FIRST_LINE: Final = 2
"""Of the front matter in its file, counted as people count."""
_LINE_END: Final = re.compile(r"\r\n?")
_TOOL: Final = re.compile(r"[^\s,()]+(?:\([^)]*\))?")
# The C parser is ten times as fast; without it Python's own does the same.
_Loader: Final = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
_KNOWN: Final = frozenset({"name", "description", "license", "compatibility", "allowed-tools", "metadata"})

Refusal = Literal[
    "no front matter", "not YAML", "alias", "missing field", "wrong type", "bad name", "other folder",
    "too long", "too big", "not UTF-8", "link", "unreadable", "changed", "name taken",
]  # fmt: skip


class SkillMistake(ValueError):
    """Why a file is refused: the kind for machines, and a sentence without its full stop for people."""

    def __init__(self, kind: Refusal, sentence: str) -> None:
        super().__init__(sentence)
        self.kind: Refusal = kind


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One valid SKILL.md. `allowed_tools` and `required_tools` are what it wants to use; they give it no right."""

    name: str
    description: str
    body: str = field(repr=False)
    folder: Path = Path()
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict[str, object])
    keywords: tuple[str, ...] = ()
    priority: int = 0
    required_tools: tuple[str, ...] = ()
    trigger_config: JsonObject = field(default_factory=dict[str, object])
    max_steps: int | None = None
    execution_plan: tuple[JsonObject, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools it speaks of, without the arguments that a name may be limited to."""
        named = (*self.required_tools, *(tool.partition("(")[0] for tool in self.allowed_tools))
        return tuple(dict.fromkeys(named))


def read_skill(folder: Path, root: Path) -> SkillFile:
    """Reads the skill in a folder below `root`; SkillMistake if it is refused."""
    return parse_skill(read_text(folder / FILE_NAME, folder, root), folder)


def read_text(path: Path, folder: Path, root: Path) -> str:
    """Reads a text file of a skill. Links may not lead out of the skill's folder, nor the folder out of `root`."""
    try:
        real = path.resolve(strict=True)
        inside = real.is_relative_to(folder.resolve()) and folder.resolve().is_relative_to(root.resolve())
        if not inside:
            raise SkillMistake("link", f"{path.name} is a link to something outside its folder")
        # Not blocking: a pipe in place of the file would stop the reader for good.
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise SkillMistake("unreadable", f"{path.name} is no file")
            content = b"" if state.st_size > MOST_BYTES else file.read(MOST_BYTES + 1)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "its links form a circle"
        raise SkillMistake("unreadable", f"{path.name} cannot be read: {reason}") from None
    if state.st_size > MOST_BYTES or len(content) > MOST_BYTES:
        raise SkillMistake("too big", f"{path.name} is larger than {MOST_BYTES // 1024} KB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillMistake("not UTF-8", f"{path.name} is not UTF-8: byte {error.start} cannot be read") from None


def parse_skill(text: str, folder: Path) -> SkillFile:
    """Parses the text of a SKILL.md that lies in this folder."""
    header, body = _split(text)
    fields = _load_header(header)
    name = _check_name(_take_text(fields, "name"), folder.name)
    description = _take_text(fields, "description")
    _check_length("description", description, _DESCRIPTION_CHARS)
    compatibility = _take_scalar(fields, "compatibility")
    _check_length("compatibility", compatibility, _COMPATIBILITY_CHARS)
    warnings = [f"{key} is not a field of the format" for key in fields if key not in _KNOWN]
    if not body:
        warnings.append("there are no instructions below the front matter")
    extras = _Extras(_take_metadata(fields), warnings)
    return SkillFile(
        name=name,
        description=description,
        body=body,
        folder=folder,
        license=_take_scalar(fields, "license"),
        compatibility=compatibility,
        allowed_tools=_take_tools(fields),
        metadata=extras.values,
        keywords=extras.words("keywords", _MOST_KEYWORDS, ","),
        priority=extras.number("priority", 0, _MOST_PRIORITY) or 0,
        required_tools=extras.words("required_tools", _MOST_TOOLS, None),
        trigger_config=extras.mapping("trigger_config"),
        max_steps=extras.number("max_steps", 1, _MOST_STEPS),
        execution_plan=extras.plan("execution_plan"),
        warnings=tuple(warnings),
    )


def read_declared_name(text: str) -> str:
    """The name a SKILL.md gives itself, not yet checked."""
    return _take_text(_load_header(_split(text)[0]), "name")


def _split(text: str) -> tuple[str, str]:
    """The front matter and the instructions."""
    text = _LINE_END.sub("\n", text.removeprefix("\ufeff"))
    first, _, rest = text.partition("\n")
    if first.rstrip() != _FENCE:
        raise SkillMistake("no front matter", f"it does not begin with a line {_FENCE}")
    closing = re.search(rf"^{_FENCE}[ \t]*$", rest[: _MOST_HEADER_CHARS + 1], re.MULTILINE)
    if closing is None:
        if len(rest) > _MOST_HEADER_CHARS:
            limit = f"within {_MOST_HEADER_CHARS // 1024} KB"
            raise SkillMistake("no front matter", f"its front matter does not end with a line {_FENCE} {limit}")
        raise SkillMistake("no front matter", f"its front matter does not end with a line {_FENCE}")
    return rest[: closing.start()], rest[closing.end() :].strip()


def _load_header(header: str) -> JsonObject:
    try:
        _check_events(header)
        fields = _to_plain(yaml.load(header, Loader=_Loader))  # noqa: S506  it is a safe loader
    except yaml.YAMLError as error:
        raise SkillMistake("not YAML", f"its front matter is not YAML: {_describe(error)}") from None
    except SkillMistake:
        raise
    except (ValueError, OverflowError, TypeError):
        # A date or a number that YAML recognises and nobody can use, or bytes.
        raise SkillMistake("not YAML", "its front matter has a value that cannot be read") from None
    if not isinstance(fields, dict | None):
        raise SkillMistake("wrong type", "its front matter is not a list of names and values")
    return cast("JsonObject", fields or {})


def _check_events(header: str) -> None:
    """Refuses what would make a small text large, or the parser deep, before anything is built."""
    depth, at_key, known = 0, True, set[str]()
    parse = cast("Callable[..., Iterator[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    for event in parse(header, Loader=_Loader):
        line = event.start_mark.line + _FIRST_LINE
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise SkillMistake("alias", f"line {line} uses an alias or anchor of YAML, which may stand for a huge text")
        if depth == 1 and isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            name = event.value if at_key and isinstance(event, yaml.ScalarEvent) else ""
            if name in known:
                raise SkillMistake("not YAML", f"line {line} gives {name[:_NAME_CHARS]} a second time")
            known |= {name} if name else set()
            at_key = not at_key
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise SkillMistake("not YAML", f"line {line} is nested too deeply")


def _describe(error: yaml.YAMLError) -> str:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read")
    mark = getattr(error, "problem_mark", None)
    place = "" if mark is None else f"line {mark.line + _FIRST_LINE}: "
    hint = "; put the value in quotes" if "mapping values" in problem else ""
    return f"{place}{problem}{hint}"


def _check_name(name: str, folder: str) -> str:
    name = unicodedata.normalize("NFKC", name)
    _check_length("name", name, _NAME_CHARS)
    if not all(sign == "-" or (sign.isalnum() and sign == sign.lower()) for sign in name):
        raise SkillMistake("bad name", f"its name {name!r} has other signs than lowercase letters, digits and hyphens")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        raise SkillMistake("bad name", f"its name {name!r} begins or ends with a hyphen, or has two in a row")
    if name != unicodedata.normalize("NFKC", folder):
        raise SkillMistake("other folder", f"its name is {name!r}, and its folder is {folder!r}")
    return name


def _check_length(name: str, value: str, most: int) -> None:
    if len(value) > most:
        raise SkillMistake("too long", f"its {name} has {len(value)} characters, and {most} are allowed")


def _take_text(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise SkillMistake("missing field", f"it has no {name}")
    if not isinstance(value, str):
        raise SkillMistake("wrong type", f"its {name} is {_type_in_words(value)} and should be text")
    return value.strip()


def _take_scalar(fields: JsonObject, name: str) -> str:
    """An optional text; a number such as a version is text to a person, too."""
    value = fields.get(name)
    if isinstance(value, list | dict):
        raise SkillMistake("wrong type", f"its {name} is {_type_in_words(cast('object', value))} and should be text")
    return "" if value is None else str(value).strip()


def _take_tools(fields: JsonObject) -> tuple[str, ...]:
    """Separated by spaces, as the format says; by commas or as a list, as many files have it."""
    value = fields.get("allowed-tools")
    entries = cast("list[object]", value) if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(entry, str) for entry in entries):
        raise SkillMistake("wrong type", "its allowed-tools are not names of tools")
    found = [tool for entry in entries for tool in _TOOL.findall(str(entry))]
    return tuple(dict.fromkeys(found))[:_MOST_TOOLS]


def _take_metadata(fields: JsonObject) -> JsonObject:
    value = fields.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SkillMistake("wrong type", f"its metadata is {_type_in_words(value)} and should be names and values")
    return cast("JsonObject", value)


def _to_plain(value: object) -> object:
    """Only what JSON has, because it is stored and shown as JSON; ValueError for anything else."""
    if isinstance(value, dict):
        return {str(key): _to_plain(inner) for key, inner in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_to_plain(inner) for inner in cast("list[object]", value)]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int) and abs(value) > _MOST_NUMBER:
        raise ValueError
    if value is not None and not isinstance(value, str | int):
        raise ValueError
    return value


def _type_in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, list):
        return "a list"
    return "names and values" if isinstance(value, dict) else "text"


@dataclass(frozen=True, slots=True)
class _Extras:
    """Annabelle's own entries in the metadata. The format leaves it free, so what does not fit is only warned about."""

    values: JsonObject
    warnings: list[str]

    def words(self, name: str, most: int, separator: str | None) -> tuple[str, ...]:
        value = self.values.get(name)
        if isinstance(value, str):
            # The format's own metadata knows only text.
            value = value.split(separator) if separator else value.replace(",", " ").split()
        if value is None:
            return ()
        entries = cast("list[object]", value) if isinstance(value, list) else [value]
        if not all(isinstance(entry, str | int) for entry in entries):
            return self._ignore(name, "is no list of texts", ())
        return tuple(dict.fromkeys(text for entry in entries if (text := str(entry).strip())))[:most]

    def number(self, name: str, least: int, most: int) -> int | None:
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or re.fullmatch(r"\d{1,4}", str(value), re.ASCII) is None:
            return self._ignore(name, f"is no number from {least} to {most}", None)
        number = int(str(value))
        return number if least <= number <= most else self._ignore(name, f"is not from {least} to {most}", None)

    def mapping(self, name: str) -> JsonObject:
        value = self.values.get(name, {})
        empty: JsonObject = {}
        return cast("JsonObject", value) if isinstance(value, dict) else self._ignore(name, "has no names", empty)

    def plan(self, name: str) -> tuple[JsonObject, ...]:
        value = self.values.get(name, [])
        steps = cast("list[object]", value) if isinstance(value, list) else [value]
        if not all(isinstance(step, dict) and cast("JsonObject", step).get("toolName") for step in steps):
            return self._ignore(name, "is no list of steps with a toolName", ())
        return tuple(cast("JsonObject", step) for step in steps)

    def _ignore(self, name: str, reason: str, default: T) -> T:
        self.warnings.append(f"metadata.{name} {reason} and is ignored")
        return default


def list_files(folder: Path) -> Iterator[Path]:
    """All entries below a skill's folder that are no folders, sorted; what git keeps for itself is left out."""
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        # A link to a folder is not followed, so it has to be told of here.
        found += [Path(parent, name) for name in folders if Path(parent, name).is_symlink()]
        found += [Path(parent, name) for name in names if name != ".git"]
        if len(found) > MOST_FILES:
            raise SkillMistake("too big", f"it has more than {MOST_FILES} files")
    yield from sorted(found)
