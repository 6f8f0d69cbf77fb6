"""What Annabelle does by itself: skills, the timer that fires them, and what becomes of each fire."""
