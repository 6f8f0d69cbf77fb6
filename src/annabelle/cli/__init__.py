"""The `annabelle` command line: one file per command, imported only when used."""
