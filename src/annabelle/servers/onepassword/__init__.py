"""1Password, to read only: what is in the vaults, and secrets as handles. Only the hub is told a value."""
