"""All tools for mail."""

from __future__ import annotations

from annabelle.servers.gmail.config import GmailConfig
from annabelle.servers.gmail.mail.attachment_tools import AttachmentTools
from annabelle.servers.gmail.mail.desk import Desk
from annabelle.servers.gmail.mail.draft_tools import DraftTools
from annabelle.servers.gmail.mail.filing_tools import FilingTools
from annabelle.servers.gmail.mail.filter_tools import FilterTools
from annabelle.servers.gmail.mail.label_tools import LabelTools
from annabelle.servers.gmail.mail.mailboxes import Mailboxes
from annabelle.servers.gmail.mail.reading_tools import ReadingTools
from annabelle.servers.gmail.mail.sending_tools import SendingTools


def mail_groups(mailboxes: Mailboxes, config: GmailConfig) -> list[object]:
    """The groups of tools, on the mailbox of whichever account is connected when they are called."""
    desk = Desk.of(config, mailboxes)
    return [
        ReadingTools(desk),
        SendingTools(desk),
        FilingTools(desk),
        DraftTools(desk),
        LabelTools(desk),
        AttachmentTools(desk),
        FilterTools(desk),
    ]
