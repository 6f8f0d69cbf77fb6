"""Runs the browser server over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.kit.readiness import Readiness
from annabelle.servers.web.config import BrowserConfig
from annabelle.servers.web.finding import what_is_missing


def readiness(config: BrowserConfig) -> Readiness:
    """Whether there is a browser to start."""

    async def missing() -> str | None:
        return what_is_missing(config.path)

    return missing


def main() -> None:
    run_listed("annabelle.servers.web", BrowserConfig.from_environment, readiness)


if __name__ == "__main__":
    main()
