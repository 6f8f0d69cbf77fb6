"""Runs mail and calendar over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.kit.server import Readiness
from annabelle.servers.mail_calendar.accounts import Accounts
from annabelle.servers.mail_calendar.config import MailCalendarConfig


def readiness(config: MailCalendarConfig) -> Readiness:
    accounts = Accounts(config)

    async def missing() -> str | None:
        return accounts.describe_missing()

    return missing


def main() -> None:
    run_listed("annabelle.servers.mail_calendar", MailCalendarConfig.from_environment, readiness)


if __name__ == "__main__":
    main()
