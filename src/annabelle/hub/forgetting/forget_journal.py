"""The pending forget request, on disk until it is done, and keyed hashes of what was forgotten."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from annabelle.core import jsonl
from annabelle.core.errors import StorageTrouble, explain_os_error
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.core.models import FrozenModel
from annabelle.core.secrets.forget_mask import fold_spelling
from annabelle.store.audit.records import get_or_create_key, keyed_hash


class ForgetRequest(FrozenModel):
    texts: tuple[str, ...] = Field(repr=False)
    user_id: str
    agent_id: str
    begun_at: datetime = Field(default_factory=now)


class PendingForgetFile:
    """Holds the text in the clear, readable by the owner only. It is overwritten before removal."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> ForgetRequest | None:
        """The unfinished request. An incomplete file means that nothing was begun."""
        try:
            return ForgetRequest.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            self.remove()
            return None
        except OSError as error:
            raise StorageTrouble(f"{self._path.name} can not be read: {error.strerror}.") from error

    def write(self, pending: ForgetRequest) -> None:
        with explain_os_error(
            StorageTrouble,
            "What is to be forgotten could not be noted",
            hint="Free some disk space; nothing was forgotten yet.",
        ):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(descriptor, pending.model_dump_json().encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def remove(self) -> None:
        shred_file(self._path)


def shred_file(path: Path) -> None:
    try:
        with path.open("r+b") as file:
            overwrite_with_zeros(file.fileno())
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageTrouble(f"{path.name} could not be deleted: {error.strerror}.") from error


def overwrite_with_zeros(descriptor: int) -> None:
    size, zeros = os.fstat(descriptor).st_size, bytes(1_000_000)
    for start in range(0, size, len(zeros)):
        os.pwrite(descriptor, zeros[: size - start], start)
    os.fsync(descriptor)


def record_forgotten(home: Home, pending: ForgetRequest, counts: Mapping[str, int]) -> list[str]:
    """Log one line with keyed hashes. Only somebody with the text and the key can recognize it."""
    key = get_or_create_key(home.audit_key_file)
    hashes = [keyed_hash(key, fold_spelling(text).encode()) for text in pending.texts]
    entry: dict[str, object] = {
        "at": now().isoformat(timespec="seconds"),
        "by": pending.user_id,
        "hashes": hashes,
        "places": dict(counts),
    }
    jsonl.append_records(home.forgotten_file, [entry])
    return hashes
