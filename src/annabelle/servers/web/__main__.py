"""Runs the browser server over stdio."""

from annabelle.servers.kit import run
from annabelle.servers.web.server import build


def main() -> None:
    run(build)


if __name__ == "__main__":
    main()
