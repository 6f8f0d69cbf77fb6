"""Runs the guardian over stdio."""

from annabelle.servers.guardian.server import build
from annabelle.servers.kit import run


def main() -> None:
    run(build)


if __name__ == "__main__":
    main()
