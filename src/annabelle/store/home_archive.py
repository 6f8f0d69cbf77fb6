"""The file format of a backup: a ZIP with a manifest, a hash for every entry, and secrets encrypted by a passphrase.

Secret entries and their names are encrypted. Their sealed list also authenticates the manifest, so that whoever has the
passphrase notices any change to the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError

from annabelle import __version__
from annabelle.core.errors import CallerMistake, NotAllowed, NotFound, TooLarge, explain_os_error
from annabelle.core.messages import now
from annabelle.store.engine import DialectName

FORMAT_VERSION = 1
CHUNK_BYTES = 1 << 20
MAX_LIST_BYTES = 64 << 20
"""Largest manifest: some 300,000 files. More would take too much memory to read."""

_MANIFEST, _SEALED, _SECRET = "manifest.json", "secrets.sealed", "secrets/"
_NONCE_BYTES, _TAG_BYTES = 12, 16
# Everything that the ZIP library raises for bytes that are not what they should be.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, LookupError, RuntimeError)


def _check_path(path: str) -> str:
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("a path must stay inside its folder")
    return path


class ArchiveEntry(BaseModel):
    """One file (`home/…`) or one table (`tables/…`)."""

    path: Annotated[str, AfterValidator(_check_path)]
    size: int = Field(ge=0)
    sha256: str
    mode: int = Field(ge=0, le=0o777)
    modified: float = Field(ge=0, le=1e11)
    member: str
    """Name inside the ZIP."""


class _ArchiveHead(BaseModel):
    """What a manifest of every format version says."""

    format: Literal["annabelle backup"] = "annabelle backup"
    format_version: int = FORMAT_VERSION
    annabelle: str = Field(default_factory=lambda: __version__, max_length=40)


class ArchiveManifest(_ArchiveHead):
    made_at: AwareDatetime = Field(default_factory=now)
    database: DialectName = "sqlite"
    revisions: dict[str, str] = Field(default_factory=dict[str, str])
    """Schema version of each set of tables."""
    left_out: list[str] = Field(default_factory=list[str])
    salt: str | None = None
    """Of the key that opens the secrets; None if they were left out."""
    entries: list[ArchiveEntry] = Field(default_factory=list[ArchiveEntry])


_Entries = TypeAdapter(list[ArchiveEntry])


def _derive_key(passphrase: str, salt: str) -> AESGCM:
    return AESGCM(Scrypt(salt=bytes.fromhex(salt), length=32, n=1 << 16, r=8, p=1).derive(passphrase.encode()))


def _encrypt(key: AESGCM, data: bytes, place: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + key.encrypt(nonce, data, place)


def _decrypt(key: AESGCM, data: bytes, place: bytes) -> bytes:
    return key.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place)


class ArchiveWriter:
    """Writes entries one after the other; `finish` makes the file complete."""

    def __init__(self, file: Path, manifest: ArchiveManifest, passphrase: str | None) -> None:
        self._manifest, self._secrets = manifest, list[ArchiveEntry]()
        self._key: AESGCM | None = None
        if passphrase is not None:
            manifest.salt = os.urandom(16).hex()
            self._key = _derive_key(passphrase, manifest.salt)
        self._zip = zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED, compresslevel=4)

    def add(
        self, path: str, chunks: Iterable[bytes], about: os.stat_result | None = None, *, secret: bool = False
    ) -> None:
        """Adds an entry, encrypted if it is secret: its content never reaches the disk in clear."""
        member, key = (f"{_SECRET}{len(self._secrets)}", self._key) if secret else (path, None)
        size, digest = self._write(member, chunks, key)
        mode, modified = (0o600, 0.0) if about is None else (about.st_mode & 0o777, about.st_mtime)
        entry = ArchiveEntry(path=path, size=size, sha256=digest, mode=mode, modified=modified, member=member)
        (self._secrets if secret else self._manifest.entries).append(entry)

    def _write(self, member: str, chunks: Iterable[bytes], key: AESGCM | None) -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        info = zipfile.ZipInfo(member)
        info.compress_type = zipfile.ZIP_DEFLATED if key is None else zipfile.ZIP_STORED
        with self._zip.open(info, "w", force_zip64=True) as out:
            for number, chunk in enumerate(chunks):
                digest.update(chunk)
                size += len(chunk)
                out.write(chunk if key is None else _encrypt(key, chunk, f"{member} {number}".encode()))
        return size, digest.hexdigest()

    def finish(self) -> None:
        listed = self._manifest.model_dump_json(indent=1).encode()
        sealed = _Entries.dump_json(self._secrets)
        if max(len(listed), len(sealed)) > MAX_LIST_BYTES:
            raise TooLarge(
                f"The home holds too many files for one backup: {len(self._manifest.entries)}.",
                hint="Keep folders with very many files outside of the workspace.",
            )
        self._zip.writestr(_MANIFEST, listed)
        if self._key is not None:
            self._zip.writestr(_SEALED, _encrypt(self._key, sealed, listed))
        self._zip.close()

    def abandon(self) -> None:
        """Closes the file. It is not a backup, and the caller removes it."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()


class ArchiveReader:
    """A backup whose manifest was checked. Each entry is checked while it is read."""

    def __init__(self, opened: zipfile.ZipFile, passphrase: str | None, *, secrets: bool) -> None:
        self._zip = opened
        listed = self._read_list(_MANIFEST)
        try:
            head = _ArchiveHead.model_validate_json(listed)
            if head.format_version > FORMAT_VERSION or _numbers(head.annabelle) > _numbers(__version__):
                raise made_by_newer(head.annabelle)
            self.manifest = ArchiveManifest.model_validate_json(listed)
        except ValidationError as error:
            raise damaged_backup() from error
        self._key: AESGCM | None = None
        self.secrets = self._open_secrets(listed, passphrase) if secrets and self.manifest.salt else []

    def _open_secrets(self, listed: bytes, passphrase: str | None) -> list[ArchiveEntry]:
        if passphrase is None:
            raise NotAllowed(
                "This backup holds secrets, so it needs its passphrase.",
                hint="Give it with --passphrase-file, or leave the secrets out with --without-secrets.",
            )
        try:
            self._key = _derive_key(passphrase, self.manifest.salt or "")
            return _Entries.validate_json(_decrypt(self._key, self._read_list(_SEALED), listed))
        except InvalidTag as error:
            raise NotAllowed(
                "The passphrase is wrong, or the backup was changed after it was made.", hint="Nothing was restored."
            ) from error
        except ValueError as error:
            raise damaged_backup() from error

    def _read_list(self, member: str) -> bytes:
        """Reads a manifest whole, up to a size that fits into memory."""
        content = b"".join(self._read_chunks(member, CHUNK_BYTES, MAX_LIST_BYTES + _NONCE_BYTES + _TAG_BYTES))
        if not content:
            raise damaged_backup()
        return content

    def _read_chunks(self, member: str, size: int, limit: int) -> Iterator[bytes]:
        try:
            info = self._zip.getinfo(member)
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise damaged_backup()  # the others unpack without a bound on memory
            with self._zip.open(info) as file:
                while chunk := file.read(size):
                    limit -= len(chunk)
                    if limit < 0:
                        raise damaged_backup()
                    yield chunk
        except _DAMAGE as error:
            raise damaged_backup() from error

    @property
    def size_bytes(self) -> int:
        """How much room everything takes that can be read."""
        return sum(entry.size for entry in (*self.manifest.entries, *self.secrets))

    def contents(self, folder: str) -> Iterator[tuple[ArchiveEntry, str, Iterator[bytes]]]:
        """Yields each entry below a folder, its path there, and its content, which is checked while it is read."""
        hidden = {entry.path for entry in self.secrets}
        public = [(entry, self._read_plain(entry)) for entry in self.manifest.entries if entry.path not in hidden]
        for entry, chunks in (*public, *((entry, self._read_secret(entry)) for entry in self.secrets)):
            if entry.path.startswith(folder):
                yield entry, entry.path.removeprefix(folder), _check_content(entry, chunks)

    def _read_plain(self, entry: ArchiveEntry) -> Iterator[bytes]:
        return self._read_chunks(entry.member, CHUNK_BYTES, entry.size)

    def _read_secret(self, entry: ArchiveEntry) -> Iterator[bytes]:
        assert self._key is not None
        overhead = _NONCE_BYTES + _TAG_BYTES
        limit = entry.size + overhead * (entry.size // CHUNK_BYTES + 1)
        for number, chunk in enumerate(self._read_chunks(entry.member, CHUNK_BYTES + overhead, limit)):
            try:
                yield _decrypt(self._key, chunk, f"{entry.member} {number}".encode())
            except (InvalidTag, ValueError) as error:
                raise damaged_backup() from error


def _check_content(entry: ArchiveEntry, chunks: Iterator[bytes]) -> Iterator[bytes]:
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
        yield chunk
    if size != entry.size or digest.hexdigest() != entry.sha256:
        raise damaged_backup()


@contextmanager
def open_archive(file: Path, passphrase: str | None = None, *, secrets: bool = True) -> Generator[ArchiveReader]:
    """Opens a backup and checks its manifest. With `secrets=False` the encrypted part is not touched."""
    if not file.is_file():
        raise NotFound(f"There is no backup at {file}.")
    with explain_os_error(CallerMistake, f"{file} can not be read"), file.open("rb") as stream:
        try:
            opened = zipfile.ZipFile(stream)
        except _DAMAGE as error:
            raise damaged_backup() from error
        with opened:
            yield ArchiveReader(opened, passphrase, secrets=secrets)


def damaged_backup() -> CallerMistake:
    return CallerMistake(
        "The file is not a whole backup of Annabelle: it is damaged, was cut off, changed, or is something else.",
        hint="Nothing was restored. Use another copy of the file.",
    )


def made_by_newer(version: str) -> CallerMistake:
    return CallerMistake(
        f"The backup was made by a newer Annabelle ({version}); this one is {__version__}.",
        hint="Nothing was restored. Update Annabelle first.",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
