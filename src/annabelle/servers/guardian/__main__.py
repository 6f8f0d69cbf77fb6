"""Runs the guardian over stdio."""

from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.kit import run_listed


def main() -> None:
    run_listed("annabelle.servers.guardian", GuardianConfig.from_environment, in_every_message=True)


if __name__ == "__main__":
    main()
