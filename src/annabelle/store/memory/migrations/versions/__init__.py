"""One file per revision; each upgrades the tables by one step."""
