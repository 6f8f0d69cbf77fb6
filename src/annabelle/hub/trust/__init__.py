"""Who may do what: loads what policy decides from, and asks it before every call of an agent."""
