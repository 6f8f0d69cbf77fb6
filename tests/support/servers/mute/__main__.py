"""Starts and never says a word."""

import time


def main() -> None:
    time.sleep(3600)


if __name__ == "__main__":
    main()
