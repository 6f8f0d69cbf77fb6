"""Runs the notes server over stdio."""

from annabelle.servers.kit import run
from annabelle.servers.notes.server import build


def main() -> None:
    run(build)


if __name__ == "__main__":
    main()
