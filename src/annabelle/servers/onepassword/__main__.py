"""Runs the 1Password server over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.onepassword.command import OnePasswordConfig, OpCommand


def main() -> None:
    run_listed(
        "annabelle.servers.onepassword",
        OnePasswordConfig.from_environment,
        readiness=lambda config: OpCommand(config).describe_missing,
    )


if __name__ == "__main__":
    main()
