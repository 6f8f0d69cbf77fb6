"""Checks whether a person's words name a value: an address, path, page, name or title (POL-04)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from email.utils import getaddresses
from functools import cached_property
from posixpath import basename, normpath
from typing import Final

# Bounded and anchored at word starts, because the pattern also runs over text by others.
_ADDRESS: Final = re.compile(
    r"(?<![^\s<>\"'(),;:])[^\s<>\"'(),;:]{1,200}@[^\s<>\"'(),;:@]{1,200}\.[^\s<>\"'(),;:@]{0,60}[^\s<>\"'(),;:.!?@]"
)
_URL: Final = re.compile(
    r"(?:https?://|(?<!\w)www\.)[^\s<>\"'`]+|(?<![\w.@-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?:/[^\s<>\"'`]*)?",
    re.IGNORECASE,
)
_URL_END: Final = ".,;:!?)]}’'\""
_SEPARATORS: Final = re.compile(r"[-\s]+")
_WORD: Final = re.compile(r"[^\W_]+")
_FILE: Final = re.compile(
    r"(?<![@\w./\\-])[\w~./\\-]{1,400}\.(?:md|txt|pdf|docx?|xlsx?|csv|tsv|json|png|jpe?g|gif|webp|svg|html?|py|js|sh|zip|tar|gz|odt|ods|pptx?|ya?ml|log|xml|eml|ics|rtf|mp3|mp4|mov|toml|ini|tex|epub)\b"
)
_INFLECTED: Final = re.compile(r"(.{3,}?)(?:owi|iem|em|ą|ę)|(.{4,})[aeiou]")
_SHORTEST_WORD: Final = 2
_MINE: Final = (
    "my|our|the|his|her|their|that|this|mein|meine|meinen|unser|unsere|der|die|das|den|mon|ma|mes|le|la|les|mi|mis|el|los|"
    "las|mój|moje|moją|ten|tę|to"
)
_FILES: Final = (
    "files?|documents?|docs?|pdf|csv|spreadsheet|sheet|folder|notes?|list|datei|dokument|ordner|fichier|dossier|archivo|"
    "carpeta|plik|script"
)
# These appear in orders and titles alike, so they identify nothing.
_COMMON_WORDS: Final = """
a an the and or of to in on at for from by with as about into that this these those it its is are was were be me my mine
i we our us you your yours he him his she her they them their who what which where when re fwd fw aw wg all every each
any some new old first last next latest recent today tomorrow yesterday now please mail mails email emails e message
messages note notes file files folder folders document documents event events meeting meetings appointment appointments
call calls calendar draft drafts label labels list lists todo todos task tasks item items contact contacts fact facts
reminder reminders send sent reply forward delete remove cancel clear move rename update change create write read save
tell summary summarise summarize page link site web news com org net www http https html txt md pdf csv docx png jpg
json monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december am pm der die das ein eine und von zu im mit für den dem le la les un une des de du et
à el los las y
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())


def normalize_text(text: str) -> str:
    """Normalize for comparison: NFC, case-folded, straight quotes, single spaces."""
    text = unicodedata.normalize("NFC", text).casefold().replace("’", "'").replace("`", "'")
    return " ".join(text.split())


def has_hidden_characters(value: str) -> bool:
    """Whether the value contains invisible or bidirectional control characters."""
    return any(unicodedata.category(sign) in ("Cf", "Cc", "Cs", "Co", "Cn") and sign not in "\n\t\r" for sign in value)


def find_addresses(value: str) -> list[str]:
    """Everything that looks like a mail address. Only `mailboxes_in` tells addresses from display names."""
    return [found.group().casefold() for found in _ADDRESS.finditer(value)]


def mailboxes_in(header: str) -> list[tuple[str, str]]:
    """Names and addresses of an address header, parsed by the mail standard: an address inside a name is a name."""
    try:
        found = getaddresses([header])
    except (ValueError, IndexError, TypeError, RecursionError):
        return [("", header)]  # an address nobody can have named
    return [(name, address.casefold()) for name, address in found if "@" in address]


def page_key(url: str) -> str:
    """Normalize a URL so that equal pages have equal keys."""
    key = re.sub(r"^https?://", "", url.strip().rstrip(_URL_END), flags=re.IGNORECASE).partition("#")[0]
    host, slash, rest = key.partition("/")
    return (host.casefold().removeprefix("www.") + slash + rest).rstrip("/")


def host_of(url: str) -> str:
    """The host of a URL with `user@` and port, since they lead to another place."""
    return page_key(url).partition("/")[0].partition("?")[0]


def find_pages(text: str) -> set[str]:
    return {page_key(found.group()) for found in _URL.finditer(text)}


def remove_pages(text: str) -> str:
    return _URL.sub(" ", text)


def content_words(text: str) -> frozenset[str]:
    """The words of a title or name that distinguish it from others."""
    words = (word for word in _WORD.findall(normalize_text(text)) if len(word) >= _SHORTEST_WORD)
    return frozenset(_stem(word) for word in words if word not in _COMMON)


def compound(text: str) -> str:
    """All its words as one."""
    return "".join(_WORD.findall(normalize_text(text)))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


class PersonWords:
    """Looks up values in what a person said."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._raw = "\n".join(texts)
        self.text = normalize_text(self._raw)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that can name something, also without inflected endings."""
        words = content_words(self.text)
        return words | {found[1] or found[2] for word in words if (found := _INFLECTED.fullmatch(word))}

    @cached_property
    def pages(self) -> frozenset[str]:
        return frozenset(find_pages(self._raw)) | frozenset(find_pages(self.text))

    @cached_property
    def hosts(self) -> frozenset[str]:
        return frozenset(host_of(page) for page in self.pages)

    @cached_property
    def addresses(self) -> frozenset[str]:
        return frozenset(find_addresses(self.text))

    @cached_property
    def files(self) -> frozenset[str]:
        """File names with a known extension."""
        return frozenset(basename(found.group().replace("\\", "/")) for found in _FILE.finditer(self.text))

    def contains(self, value: str) -> bool:
        """Whether the value appears as a whole."""
        wanted = normalize_text(value)
        if not wanted or has_hidden_characters(value):
            return False
        return re.search(rf"(?<![\w.@+%/\\~-]){re.escape(wanted)}(?![\w@\\/%+~-]|[.:][\w])", self.text) is not None

    def names_address(self, value: str) -> bool:
        """Whether a mail address, phone number or user name was said."""
        value = value.strip()
        if has_hidden_characters(value):
            return False
        if "@" in value.lstrip("@"):
            return value.casefold() in self.addresses
        return self.contains(value) or self.contains(value.lstrip("@")) or self._names_number(value)

    def _names_number(self, value: str) -> bool:
        digits = re.sub(r"\D", "", value)
        if len(digits) < 6 or re.search(r"[^\d\s+()./-]", value):
            return False
        return digits in {re.sub(r"\D", "", run) for run in re.findall(r"\+?\d[\d\s()./-]{4,}\d", self.text)}

    def names_path(self, value: str) -> bool:
        """Whether a file was named by its path or its name alone."""
        if has_hidden_characters(value) or not value.strip(" ./\\"):
            return False
        wanted = normpath(value.replace("\\", "/")).removeprefix("./")
        if wanted.startswith("..") or "/../" in wanted:
            return False
        name = basename(wanted)
        if "/" not in wanted and "." not in name and not content_words(name):
            # "Delete the files" names no folder called "files", but "what is in Documents" names "Documents".
            return name != name.lower() and re.search(rf"(?<![\w/]){re.escape(name)}(?![\w])", self._raw) is not None
        return (
            self.contains(wanted) or self.contains(f"./{wanted}") or self.contains(name) or self._names_in_words(name)
        )

    def _names_in_words(self, name: str) -> bool:
        """`tax-report_2025.pdf` may be called "tax report 2025": every word of the name in order."""
        stem = name.rpartition(".")[0] or name
        words = _WORD.findall(normalize_text(stem))
        if not words or (len(words) == 1 and not content_words(stem)):
            return False
        run = r"[\s_.-]+".join(map(re.escape, words))
        if len(words) == 1:
            # A single word names a file only as a noun: "my cv" or "budget file", but not "that is private".
            run = rf"(?:{_MINE})\s+(?:\w+\s+)?{run}|{run}(?=\s+(?:{_FILES})\b)"
        return re.search(rf"(?<![\w/\\.-])(?:{run})(?![\w/\\]|[.-][\w])", self.text) is not None

    def names_folder(self, path: str) -> bool:
        """Whether a folder that contains the file was named."""
        parts = [part for part in normpath(path.replace("\\", "/")).split("/")[:-1] if part not in (".", "..", "")]
        if ".." in path.replace("\\", "/").split("/"):
            return False
        return any(self.contains(part) or self.contains(f"{part}/") or self._names_in_words(part) for part in parts)

    def shares_word_with(self, value: str) -> bool:
        """Whether a word of a person's or thing's name was said."""
        return bool(content_words(value) & self.words) and not has_hidden_characters(value)

    def names_page(self, url: str) -> bool:
        return not has_hidden_characters(url) and page_key(url) in self.pages
