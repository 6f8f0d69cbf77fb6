"""Databases that are not the hub's own, opened for as long as it takes to look through them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import StorageTrouble
from annabelle.store.database import make_engine

SERVER = "The database server"


@contextmanager
def opened(url: str, name: str, *, read_only: bool = False) -> Generator[Engine]:
    """An engine with one connection, gone afterwards. `name` is what a person calls the database."""
    engine = make_engine(url, pool_size=1, read_only=read_only)
    try:
        with searching(name):
            yield engine
    finally:
        engine.dispose()


@contextmanager
def searching(name: str) -> Generator[None]:
    """What a driver says becomes a sentence that does not quote it: it may hold what is being forgotten."""
    try:
        yield
    except DBAPIError as error:
        raise StorageTrouble(
            f"{name} could not be searched: {type(error.orig).__name__}.",
            hint="See whether the database is damaged, locked by another program or without space, and try again.",
        ) from error
