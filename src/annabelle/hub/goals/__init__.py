"""Goals of people, their notes, tasks and feed, and the monitor that keeps them healthy."""
