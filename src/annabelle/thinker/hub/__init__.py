"""What a thinker asks of the hub: its tools, a call of one, and the book of costs."""
