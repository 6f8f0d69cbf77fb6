"""Events and free time, in Google Calendar or on a CalDAV server."""
