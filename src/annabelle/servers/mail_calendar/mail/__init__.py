"""Mail tools, over Google or IMAP and SMTP."""
