"""Authentication and the checks every request passes."""
