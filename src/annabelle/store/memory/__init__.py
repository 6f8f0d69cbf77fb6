"""What Annabelle knows, one file per kind of row. Only the memory server opens this database."""
