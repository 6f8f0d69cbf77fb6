"""Plays the guardian: slow to start, and notes when it was ready."""

import time

from support.servers.stage import Prop, Stage
from support.servers.witness import note
from support.servers.witness.__main__ import act


def main() -> None:
    time.sleep(0.3)
    note("guard ready")
    Stage("guard", [Prop("act", act)]).run()


if __name__ == "__main__":
    main()
