"""Runs the Telegram server over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.telegram.api import AccountFile, TelegramConfig


def main() -> None:
    run_listed(
        "annabelle.servers.telegram",
        TelegramConfig.from_environment,
        readiness=lambda config: AccountFile(config.home).describe_missing,
    )


if __name__ == "__main__":
    main()
