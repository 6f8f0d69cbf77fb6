"""Moments of the hub in the person's time zone. Not in `output.py`, because reading schedules is slow to import."""

from __future__ import annotations

from datetime import datetime

from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.skills.schedule import find_time_zone


def format_local(moment: object, form: str = "%Y-%m-%d %H:%M") -> str:
    zone = find_time_zone(load_settings(Home.from_environment()).user_timezone)
    return f"{datetime.fromisoformat(str(moment)).astimezone(zone):{form}}"
