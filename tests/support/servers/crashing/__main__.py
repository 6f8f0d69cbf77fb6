"""Ends as soon as it has started, with a word about why."""

import sys

from support.servers.witness import note


def main() -> None:
    note("crashing started")
    sys.stderr.write("the moon is in the wrong place\n")
    sys.exit(3)


if __name__ == "__main__":
    main()
