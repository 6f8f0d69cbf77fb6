"""Who may come in: the checks every request passes before any resource sees it."""
