"""The parts of this machine that programs need to run at all, and that hold nothing of anybody."""

from __future__ import annotations

from pathlib import Path

_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl", "ca-certificates", "pki", "localtime")
_ETC_WITH_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf")


def system_arguments(network: bool, root: Path = Path("/")) -> list[str]:
    """The arguments with which bubblewrap shows the system, read-only."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in _TOP:
        place = root / name
        if place.is_symlink():
            arguments += ["--symlink", str(place.readlink()), f"/{name}"]
        elif place.is_dir():
            arguments += ["--ro-bind", str(place), f"/{name}"]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in (*_ETC, *(_ETC_WITH_NETWORK if network else ())):
        place = root / "etc" / name
        if place.exists():  # a link is followed: resolv.conf often is one
            arguments += ["--ro-bind", str(place.resolve()), f"/etc/{name}"]
    return arguments
