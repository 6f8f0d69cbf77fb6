"""The terminal's side of Annabelle: `annabelle …`, one file per command, loaded only when it is used."""
