"""Migrations of the hub's tables, one revision per file in `versions`."""

from pathlib import Path

NEWEST = "0011"
"""The revision this program works with, named here so that an up-to-date start need not load Alembic."""

FOLDER = Path(__file__).parent
