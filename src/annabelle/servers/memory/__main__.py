"""Runs the memory over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.memory.config import MemoryConfig


def main() -> None:
    run_listed("annabelle.servers.memory", MemoryConfig.from_environment, in_every_message=True)


if __name__ == "__main__":
    main()
