"""What checks read where no hub runs: the files of the home, and its database without changing it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from annabelle.core.config_file import ConfigFile, parse_config
from annabelle.core.errors import AnnabelleError, ConfigMistake
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.settings import Settings, load_settings
from annabelle.hub.agents.config import AgentsConfig, default_config
from annabelle.hub.agents.halts import Halts
from annabelle.hub.diagnosis.check import DiagnosisContext
from annabelle.store.engine import DatabaseLocation, describe_error, make_engine, parse_url, sqlite_url

T = TypeVar("T")


class OfflineDatabase:
    """The hub's database as it is, neither locked nor migrated."""

    def __init__(self, url: str) -> None:
        self._place = DatabaseLocation(parse_url(url))
        self._engine = make_engine(url, read_only=True)

    async def read(self, query: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(self._read, query)

    def _read(self, query: Callable[[Connection], T]) -> T:
        try:
            with self._engine.begin() as connection:
                return query(connection)
        except DBAPIError as error:
            trouble = describe_error(error, self._place)
            raise trouble or AnnabelleError(f"The tables of {self._place.name} are of another version.") from error

    def close(self) -> None:
        self._engine.dispose()


def load_usable_settings(home: Home) -> Settings:
    """The settings, or the defaults where they are not valid; a check of its own says that."""
    try:
        return load_settings(home)
    except ConfigMistake:
        return Settings.model_construct()


@contextmanager
def offline_context(home: Home) -> Generator[DiagnosisContext]:
    settings = load_usable_settings(home)
    database = _open_database(home, settings)
    try:
        yield DiagnosisContext(
            home=home,
            settings=settings,
            agents=_load_agents(home, settings),
            halts=Halts(home.halts_file),
            at=now(),
            database=database,
        )
    finally:
        if database is not None:
            database.close()


def _open_database(home: Home, settings: Settings) -> OfflineDatabase | None:
    if settings.database_url is not None:
        try:
            return OfflineDatabase(settings.database_url.get_secret_value())
        except ConfigMistake:
            return None
    return OfflineDatabase(sqlite_url(home.database_file)) if home.database_file.exists() else None


def _load_agents(home: Home, settings: Settings) -> AgentsConfig:
    try:
        return read_agents(home, settings)
    except ConfigMistake:
        return default_config(settings)


def read_agents(home: Home, settings: Settings) -> AgentsConfig:
    """agents.json as it is, without keeping a copy of it; ConfigMistake names the line."""
    file = ConfigFile(settings.agents_config_path or home.agents_file)
    text = file.read_text()
    return default_config(settings) if text is None else parse_config(AgentsConfig, text, file.path.name)
