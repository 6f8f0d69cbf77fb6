"""Runs the searcher over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.searcher.config import SearcherConfig
from annabelle.servers.searcher.provider_chain import ProviderChain


def main() -> None:
    run_listed(
        "annabelle.servers.searcher",
        SearcherConfig.from_environment,
        readiness=lambda config: ProviderChain.from_config(config).missing,
    )


if __name__ == "__main__":
    main()
