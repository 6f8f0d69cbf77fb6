"""What every call passes on its way to a server, each a small client around the next."""
