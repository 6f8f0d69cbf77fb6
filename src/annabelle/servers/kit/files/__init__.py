"""The workspace and the granted folders, as every server that touches files sees them: no link, no way out."""
