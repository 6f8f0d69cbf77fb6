"""Mail and calendar of the connected account: Google, or IMAP, SMTP and CalDAV. Its public name is gmail."""
