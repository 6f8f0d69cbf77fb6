"""One file per revision; each moves the tables one step forward."""
