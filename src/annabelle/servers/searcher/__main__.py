"""Runs the searcher over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.providers.chain import Chain


def main() -> None:
    run_listed(
        "annabelle.servers.searcher",
        SearcherConfig.from_environment,
        readiness=lambda config: Chain.of(config).missing,
    )


if __name__ == "__main__":
    main()
