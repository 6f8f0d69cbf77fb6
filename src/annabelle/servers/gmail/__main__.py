"""Runs mail and calendar over stdio."""

from annabelle.servers.gmail.accounts import Accounts
from annabelle.servers.gmail.config import GmailConfig
from annabelle.servers.kit import run_listed
from annabelle.servers.kit.readiness import Readiness


def readiness(config: GmailConfig) -> Readiness:
    """Whether an account is connected."""
    accounts = Accounts(config)

    async def missing() -> str | None:
        return accounts.missing()

    return missing


def main() -> None:
    run_listed("annabelle.servers.gmail", GmailConfig.from_environment, readiness)


if __name__ == "__main__":
    main()
