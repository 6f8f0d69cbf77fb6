"""Programs that run inside a sandbox. They are copied there as text and cannot import Annabelle."""
