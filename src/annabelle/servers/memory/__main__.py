"""Runs the memory over stdio."""

from annabelle.servers.kit import run
from annabelle.servers.memory.server import build


def main() -> None:
    run(build)


if __name__ == "__main__":
    main()
