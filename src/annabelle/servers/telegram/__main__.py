"""Runs the Telegram server over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.kit.readiness import Readiness
from annabelle.servers.telegram.account import AccountFile
from annabelle.servers.telegram.config import TelegramConfig


def readiness(config: TelegramConfig) -> Readiness:
    """Whether an account is connected."""
    account = AccountFile(config.home)

    async def missing() -> str | None:
        return account.missing()

    return missing


def main() -> None:
    run_listed("annabelle.servers.telegram", TelegramConfig.from_environment, readiness)


if __name__ == "__main__":
    main()
