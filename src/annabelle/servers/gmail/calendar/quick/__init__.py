"""Events from one sentence, the same for every calendar server."""
