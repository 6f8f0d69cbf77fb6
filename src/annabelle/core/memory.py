"""What is said of a piece of knowledge: which kind it is, where it came from, and how far it may be trusted."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FactCategory = Literal["preference", "background", "pattern", "project", "contact", "decision"]
ContactType = Literal["work", "personal", "ignored"]
ProjectStatus = Literal["active", "paused", "completed"]
ProjectType = Literal["work", "personal"]
Priority = Literal["high", "medium", "low"]
SourceType = Literal["auto", "manual"]
SourceStatus = Literal["ok", "warning", "error", "unknown"]

Trust = Literal["trusted", "untrusted"]
"""Untrusted is whatever may have been written by somebody else: a page, a mail, a file, an external server's answer."""


class Provenance(BaseModel):
    """Where the content of a call may have come from. Untrusted once, untrusted for good (TRU-03)."""

    model_config = ConfigDict(frozen=True)

    trust: Trust = "trusted"
    origins: tuple[str, ...] = Field(default=(), description="Tools whose untrusted output had been seen by then")
