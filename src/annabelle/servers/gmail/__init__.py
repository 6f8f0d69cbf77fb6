"""Mail and calendar: of a Google account, or of any mailbox with IMAP, SMTP and CalDAV. The same tools for both."""
