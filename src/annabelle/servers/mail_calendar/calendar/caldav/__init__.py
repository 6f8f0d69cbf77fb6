"""Calendars on any CalDAV server."""
