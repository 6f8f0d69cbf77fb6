"""E-mail, by a mailbox of Annabelle's own."""
