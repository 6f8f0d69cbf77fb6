"""Runs the code server over stdio."""

from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.isolation.selection import IsolationSelector
from annabelle.servers.kit import run_listed


def main() -> None:
    run_listed(
        "annabelle.servers.codexec",
        CodeConfig.from_environment,
        readiness=lambda config: IsolationSelector(config).missing,
    )


if __name__ == "__main__":
    main()
