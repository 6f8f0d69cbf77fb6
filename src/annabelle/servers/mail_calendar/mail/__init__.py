"""Mail: one set of tools over two kinds of mailbox."""
