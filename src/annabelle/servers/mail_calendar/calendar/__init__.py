"""Events and free time: of Google Calendar, or of any CalDAV server."""
