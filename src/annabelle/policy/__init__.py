"""What may happen, and why: where content came from, and what that allows."""
