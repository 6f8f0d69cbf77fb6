"""When a call needs a question: one module for each kind of action. Each yields the reasons to ask."""
