"""Shared by the calendar tools: connected calendars, time zone and clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from annabelle.core.connections import MailAccount
from annabelle.core.errors import ConfigMistake, InvalidArguments, Unavailable
from annabelle.servers.mail_calendar.accounts import Accounts
from annabelle.servers.mail_calendar.calendar.caldav.client import DavAccount
from annabelle.servers.mail_calendar.calendar.caldav.service import CalDavService
from annabelle.servers.mail_calendar.calendar.event import CalendarService
from annabelle.servers.mail_calendar.calendar.google_calendar import GoogleCalendar
from annabelle.servers.mail_calendar.calendar.times import load_zone
from annabelle.servers.mail_calendar.config import ServerAccess
from annabelle.servers.mail_calendar.google_session import GoogleSession

Clock = Callable[[], datetime]


class CalendarContext:
    def __init__(self, accounts: Accounts, timezone: str, access: ServerAccess, clock: Clock | None = None) -> None:
        self._accounts, self._timezone, self._access = accounts, timezone, access
        self.now = clock or (lambda: datetime.now(UTC))
        self._service: CalendarService | None = None
        self._service_of: object = None

    def service(self) -> CalendarService:
        """Calendars of the connected account. Google comes first if both are connected."""
        account = self._accounts.require("No calendar is connected.")
        if self._service is None or account is not self._service_of:
            self._service = self._connect(account)
            self._service_of = account
        return self._service

    def zone(self, name: str | None = None) -> ZoneInfo:
        """The named zone, or the user's."""
        if name:
            return load_zone(name)
        try:
            return load_zone(self._timezone)
        except InvalidArguments as error:
            raise ConfigMistake(
                "USER_TIMEZONE is not a time zone.", hint="Set it to a name like Europe/Berlin.", field="USER_TIMEZONE"
            ) from error

    def _connect(self, account: GoogleSession | MailAccount) -> CalendarService:
        if not isinstance(account, MailAccount):
            return GoogleCalendar(account, self.zone())
        if not account.caldav_url:
            raise Unavailable(
                "The connected mailbox comes without a calendar.",
                hint="Connect it with the address of its CalDAV server: annabelle connect mail",
            )
        return CalDavService(
            DavAccount(
                account.caldav_url,
                account.caldav_username or account.username,
                account.caldav_password or account.password,
                account.address,
            ),
            self.zone(),
            self._access,
        )
