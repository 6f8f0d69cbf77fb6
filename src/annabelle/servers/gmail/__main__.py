"""Runs mail and calendar over stdio."""

from annabelle.servers.gmail.server import build
from annabelle.servers.kit import run


def main() -> None:
    run(build)


if __name__ == "__main__":
    main()
