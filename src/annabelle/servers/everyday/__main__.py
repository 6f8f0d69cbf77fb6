"""Runs the everyday server over stdio."""

from annabelle.servers.everyday.config import EverydayConfig
from annabelle.servers.kit import run_listed


def main() -> None:
    run_listed("annabelle.servers.everyday", EverydayConfig.from_environment)


if __name__ == "__main__":
    main()
