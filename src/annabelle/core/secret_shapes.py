"""What secrets look like, by kind: one table for what is masked in logs and what memory refuses to keep."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Text that is a secret whatever stands around it. Each one holds one of the marks, which is quick to see."""

    kind: str
    marks: tuple[str, ...]
    pattern: str


_PRIVATE_KEY = r"PRIVATE KEY(?: BLOCK)?-----"

SHAPES: tuple[Shape, ...] = (
    Shape("Anthropic API key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,}"),
    Shape("OpenRouter API key", ("sk-or-",), r"sk-or-[A-Za-z0-9_-]{16,}"),
    Shape("OpenAI API key", ("sk-",), r"sk-(?:proj-)?[A-Za-z0-9_-]{16,}"),
    Shape("Groq API key", ("gsk_",), r"gsk_[A-Za-z0-9]{16,}"),
    Shape("xAI API key", ("xai-",), r"xai-[A-Za-z0-9]{20,}"),
    Shape("Perplexity API key", ("pplx-",), r"pplx-[A-Za-z0-9]{20,}"),
    Shape("Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{20,}"),
    Shape("Slack token", ("xox", "xapp-"), r"xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}"),
    Shape("Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"),
    Shape(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
    ),
    Shape("GitLab token", ("glpat-", "gldt-", "glrt-", "glptt-"), r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{16,}"),
    Shape("AWS key id", ("AKIA", "ASIA"), r"A(?:KIA|SIA)[0-9A-Z]{16}"),
    Shape("Google API key", ("AIza",), r"AIza[0-9A-Za-z_-]{30,}"),
    Shape("Google access token", ("ya29.",), r"ya29\.[\w-]{20,}"),
    Shape(
        "Stripe key",
        ("k_live_", "k_test_", "whsec_"),
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{16,}",
    ),
    Shape("SendGrid API key", ("SG.",), r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    Shape("package registry token", ("npm_", "pypi-"), r"npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}"),
    Shape("Notion token", ("ntn_", "secret_"), r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}"),
    Shape("search API key", ("tvly-", "BSA"), r"tvly-[A-Za-z0-9-]{16,}|BSA[A-Za-z0-9_-]{24,}"),
    Shape("Telegram bot token", (":AA",), r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}"),
    Shape("JSON web token", ("eyJ",), r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    Shape(
        "private key",
        ("-----BEGIN", "AGE-SECRET-KEY-1"),
        rf"-----BEGIN[ A-Z]*{_PRIVATE_KEY}[\s\S]*?(?:-----END[ A-Z]*{_PRIVATE_KEY}|\Z)|AGE-SECRET-KEY-1[0-9A-Z]{{20,}}",
    ),
    # What stands before the seed is bounded: a text of nothing but beginnings would be read to its end from each.
    Shape("one-time password seed", ("otpauth://",), r"(?<=otpauth://)\S{0,400}?secret=[A-Z2-7]{8,}\S*"),
    Shape("password in an address", ("@",), r"(?<=://)[^\s:/@]*:[^\s/@]+(?=@)"),
)

ANY_SHAPE = re.compile("|".join(shape.pattern for shape in SHAPES))
_MARKS = tuple(dict.fromkeys(mark for shape in SHAPES for mark in shape.marks))

ASSIGNED = re.compile(
    # What stands before may be joined to it by an underscore (MAIL_TOKEN=…), but not be a part of the same word.
    r"(?i)(?<![^\W_])(authorization|x-annabelle-token|api[_-]?key|token|secret|password|passwd)([\"']?\s*[:=]\s*[\"']?)"
    # A handle (secret://vault/…) stands for a secret and is none: who is asked about a call has to see which it is.
    r"(?!//[a-z0-9_-]+/[a-z0-9]{16,64}(?![a-z0-9]))(?:(?:bearer|basic|token)\s+)?([^\s\",;&]{6,})"
)
"""A name that says it holds a secret, the sign after it, and the value."""


def may_have_shape(text: str) -> bool:
    """False for the most of texts, in a tenth of the time a search for every shape takes."""
    return any(mark in text for mark in _MARKS)
