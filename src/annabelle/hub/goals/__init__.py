"""Goals of people, and what is kept for them."""
