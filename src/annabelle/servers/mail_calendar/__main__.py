"""Runs mail and calendar over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.mail_calendar.accounts import Accounts
from annabelle.servers.mail_calendar.config import MailCalendarConfig


def main() -> None:
    run_listed(
        "annabelle.servers.mail_calendar",
        MailCalendarConfig.from_environment,
        readiness=lambda config: Accounts(config).describe_missing,
    )


if __name__ == "__main__":
    main()
