"""Runs the browser server over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.kit.server import Readiness
from annabelle.servers.web.config import BrowserConfig, describe_missing


def readiness(config: BrowserConfig) -> Readiness:
    async def missing() -> str | None:
        return describe_missing(config.path)

    return missing


def main() -> None:
    run_listed("annabelle.servers.web", BrowserConfig.from_environment, readiness)


if __name__ == "__main__":
    main()
