"""Read-only access to 1Password: vault contents, with secrets as handles. Only the hub gets a value."""
