"""Patterns of known keys and tokens, for masking in logs and for what memory refuses to store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """Text that is a secret in any context. Each match contains one of the markers, which are quick to check."""

    kind: str
    markers: tuple[str, ...]
    pattern: str


_PRIVATE_KEY = r"PRIVATE KEY(?: BLOCK)?-----"

SECRET_PATTERNS: tuple[SecretPattern, ...] = (
    SecretPattern("Anthropic API key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,}"),
    SecretPattern("OpenRouter API key", ("sk-or-",), r"sk-or-[A-Za-z0-9_-]{16,}"),
    SecretPattern("OpenAI API key", ("sk-",), r"sk-(?:proj-)?[A-Za-z0-9_-]{16,}"),
    SecretPattern("Groq API key", ("gsk_",), r"gsk_[A-Za-z0-9]{16,}"),
    SecretPattern("xAI API key", ("xai-",), r"xai-[A-Za-z0-9]{20,}"),
    SecretPattern("Perplexity API key", ("pplx-",), r"pplx-[A-Za-z0-9]{20,}"),
    SecretPattern("Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{20,}"),
    SecretPattern("Slack token", ("xox", "xapp-"), r"xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}"),
    SecretPattern("Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"),
    SecretPattern(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
    ),
    SecretPattern("GitLab token", ("glpat-", "gldt-", "glrt-", "glptt-"), r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{16,}"),
    SecretPattern("AWS key id", ("AKIA", "ASIA"), r"A(?:KIA|SIA)[0-9A-Z]{16}"),
    SecretPattern("Google API key", ("AIza",), r"AIza[0-9A-Za-z_-]{30,}"),
    SecretPattern("Google access token", ("ya29.",), r"ya29\.[\w-]{20,}"),
    SecretPattern(
        "Stripe key",
        ("k_live_", "k_test_", "whsec_"),
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{16,}",
    ),
    SecretPattern("SendGrid API key", ("SG.",), r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    SecretPattern("package registry token", ("npm_", "pypi-"), r"npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}"),
    SecretPattern("Notion token", ("ntn_", "secret_"), r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}"),
    SecretPattern("search API key", ("tvly-", "BSA"), r"tvly-[A-Za-z0-9-]{16,}|BSA[A-Za-z0-9_-]{24,}"),
    SecretPattern("Telegram bot token", (":AA",), r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}"),
    SecretPattern("JSON web token", ("eyJ",), r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    SecretPattern(
        "private key",
        ("-----BEGIN", "AGE-SECRET-KEY-1"),
        rf"-----BEGIN[ A-Z]*{_PRIVATE_KEY}[\s\S]*?(?:-----END[ A-Z]*{_PRIVATE_KEY}|\Z)|AGE-SECRET-KEY-1[0-9A-Z]{{20,}}",
    ),
    # The part before the seed is bounded: unbounded, text full of prefixes would take quadratic time.
    SecretPattern("one-time password seed", ("otpauth://",), r"(?<=otpauth://)\S{0,400}?secret=[A-Z2-7]{8,}\S*"),
    SecretPattern("password in an address", ("@",), r"(?<=://)[^\s:/@]*:[^\s/@]+(?=@)"),
)

ANY_SECRET = re.compile("|".join(shape.pattern for shape in SECRET_PATTERNS))
_MARKERS = tuple(dict.fromkeys(mark for shape in SECRET_PATTERNS for mark in shape.markers))

ASSIGNED_SECRET = re.compile(
    # An underscore may join a prefix to the name (MAIL_TOKEN=…), but not be part of the same word.
    r"(?i)(?<![^\W_])(authorization|x-annabelle-token|api[_-]?key|token|secret|password|passwd)([\"']?\s*[:=]\s*[\"']?)"
    # A handle (secret://vault/…) is not a secret: people who approve a call need to see which one it is.
    r"(?!//[a-z0-9_-]+/[a-z0-9]{16,64}(?![a-z0-9]))(?:(?:bearer|basic|token)\s+)?([^\s\",;&]{6,})"
)
"""A secret's name, the sign after it, and the value."""


def may_contain_secret(text: str) -> bool:
    """Quick check that is False for most texts, in a tenth of the time of a full search."""
    return any(mark in text for mark in _MARKERS)


# A key begins at the start of a word: "task-list-of-the-week" contains none.
_AT_WORD_START = re.compile(
    "|".join(f"(?P<k{n}>(?<![A-Za-z0-9])(?:{shape.pattern}))" for n, shape in enumerate(SECRET_PATTERNS))
)


def find_patterns(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields the kind, start and end of every such key."""
    if may_contain_secret(text):
        for match in _AT_WORD_START.finditer(text):
            yield SECRET_PATTERNS[int(str(match.lastgroup)[1:])].kind, match.start(), match.end()
