"""Opens the channels that are set up. Their libraries are loaded only then: most homes have none or one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from annabelle.channels.channel import Channel
from annabelle.core.messages import MATRIX, TELEGRAM, TELEGRAM_ACCOUNT
from annabelle.core.settings import Settings
from annabelle.hub.base import HubBase
from annabelle.hub.channels.accounts import ChannelAccounts
from annabelle.toolbox.facade import ToolServers

Menu = Sequence[tuple[str, str]]


def open_channels(*, base: HubBase, accounts: ChannelAccounts, servers: ToolServers, menu: Menu = ()) -> list[Channel]:
    """The channels that are set up."""
    settings, opened = base.settings, list[Channel]()
    if settings.telegram_bot_token is not None:
        opened.append(_open_bot(settings, settings.telegram_bot_token.get_secret_value(), menu))
    if settings.matrix_homeserver and settings.matrix_access_token is not None:
        opened.append(_open_matrix(settings, settings.matrix_access_token.get_secret_value(), accounts))
    if settings.email_channel_address and settings.email_channel_password is not None:
        from annabelle.channels.email.channel import open_mailbox  # noqa: PLC0415

        opened.append(open_mailbox(settings))
    if settings.telegram_account_channel:
        opened.append(_open_account(base, accounts, servers))
    return opened


def _open_bot(settings: Settings, token: str, menu: Menu) -> Channel:
    from annabelle.channels.telegram.bot_api import BotApi  # noqa: PLC0415
    from annabelle.channels.telegram.channel import TelegramChannel  # noqa: PLC0415

    public = settings.telegram_webhook_url.rstrip("/")
    webhook = f"{public}/channels/{TELEGRAM}/webhook" if public else ""
    return TelegramChannel(BotApi(settings.telegram_api_url, token), webhook=webhook, menu=menu)


def _open_matrix(settings: Settings, token: str, accounts: ChannelAccounts) -> Channel:
    from annabelle.channels.matrix.channel import MatrixChannel  # noqa: PLC0415
    from annabelle.channels.matrix.client_api import MatrixApi  # noqa: PLC0415

    return MatrixChannel(MatrixApi(settings.matrix_homeserver, token), partial(accounts.may_enter, MATRIX))


def _open_account(base: HubBase, accounts: ChannelAccounts, servers: ToolServers) -> Channel:
    from annabelle.channels.telegram_account.channel import AccountOptions, TelegramAccountChannel  # noqa: PLC0415

    options = AccountOptions(max(base.settings.channel_poll_interval_ms / 1000, 0.1), base.workspace)
    return TelegramAccountChannel(servers, options, partial(accounts.find_people, TELEGRAM_ACCOUNT))
