"""Messages from their arrival to the delivered answer, and the events of their turns."""
