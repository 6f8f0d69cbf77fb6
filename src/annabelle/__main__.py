"""`python -m annabelle` is the command `annabelle`."""

from annabelle.cli.app import main

main()
