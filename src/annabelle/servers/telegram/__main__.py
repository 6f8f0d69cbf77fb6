"""Runs the Telegram server over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.kit.server import Readiness
from annabelle.servers.telegram.api import AccountFile, TelegramConfig


def readiness(config: TelegramConfig) -> Readiness:
    account = AccountFile(config.home)

    async def describe_missing() -> str | None:
        return account.describe_missing()

    return describe_missing


def main() -> None:
    run_listed("annabelle.servers.telegram", TelegramConfig.from_environment, readiness)


if __name__ == "__main__":
    main()
