"""Starts the command of a cell."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Generator
from contextlib import contextmanager

from annabelle.servers.codexec.isolation.layer import Cell, Layer

_STREAM_LIMIT = 1 << 16


async def spawn(layer: Layer, cell: Cell, *, stdin: int, stdout: int, stderr: int) -> Process:
    """The command, with the cell's environment and nothing of the server's own. Raises OSError."""
    with handed_over(layer.call_filter(cell)) as descriptor:
        return await asyncio.create_subprocess_exec(
            *layer.command(cell, descriptor),
            env=layer.environment(cell),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            limit=_STREAM_LIMIT,
            pass_fds=() if descriptor is None else (descriptor,),
            umask=0o022,  # packages are fetched by one user and read by others
            start_new_session=True,  # Ctrl-C in a terminal is for Annabelle
        )


@contextmanager
def handed_over(data: bytes | None) -> Generator[int | None]:
    """A descriptor from which another process can read some bytes; it is closed here at the end."""
    if data is None:
        yield None
        return
    descriptor = os.memfd_create("filter")
    try:
        os.write(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
