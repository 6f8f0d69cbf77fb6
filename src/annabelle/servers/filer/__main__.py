"""Runs the filer over stdio."""

from annabelle.servers.kit import run_listed
from annabelle.servers.kit.files.config import FilesConfig


def main() -> None:
    run_listed("annabelle.servers.filer", FilesConfig.from_environment)


if __name__ == "__main__":
    main()
