"""Moments of the hub in the person's time zone. Not in `output.py`, because reading schedules is slow to import."""

from __future__ import annotations

import re
from datetime import datetime

from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.skills.schedule import find_user_zone


def format_local(moment: object, form: str = "%Y-%m-%d %H:%M") -> str:
    zone = find_user_zone(load_settings(Home.from_environment()).user_timezone)
    return f"{datetime.fromisoformat(str(moment)).astimezone(zone):{form}}"


def read_clock_time(text: str) -> str | None:
    """A time of day as 08:30, whether its hour has one digit or two; None if it is none."""
    clock = re.fullmatch(r"(\d{1,2}):(\d{2})", text)
    return None if clock is None else f"{int(clock[1]):02}:{clock[2]}"
