"""What each tool can do at worst, and what its arguments mean."""
