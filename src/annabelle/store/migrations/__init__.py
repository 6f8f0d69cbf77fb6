"""The history of the tables, one revision per file in `versions`."""

from pathlib import Path

NEWEST = "0004"
"""The revision this program works with. Named here so that a start with nothing to do need not load Alembic."""

FOLDER = Path(__file__).parent
