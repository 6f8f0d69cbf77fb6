"""Messages from arrival to delivered answer, and the events of their turns."""
