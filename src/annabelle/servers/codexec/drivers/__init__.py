"""Programs that run inside a cell. They are copied there as text and import nothing of Annabelle."""
