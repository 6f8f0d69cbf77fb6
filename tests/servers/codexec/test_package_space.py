"""What packages may take on the disk, and what becomes of those that do not fit or are not used any more."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from annabelle.core.errors import TooLarge
from annabelle.servers.codexec.config import CodeConfig, PackageLimits
from annabelle.servers.codexec.data_folders import CodeFolders
from annabelle.servers.kit import ToolServer
from servers.codexec.calling import CallAs, MakeServer
from servers.codexec.registries import Registry, serving
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-EXE")

_FAT = f"WORD = '{secrets.token_hex(800_000)}'"
_LEAVE = """
import os, sys
from pathlib import Path
from annabelle.servers.codexec.data_folders import CodeFolders
run = CodeFolders(Path(sys.argv[1])).new_run()
print(run.root.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def packages() -> Iterator[Registry]:
    with serving() as registry:
        registry.add_wheel("thin", "1.0", "WORD = 'thin'")
        registry.add_wheel("fat", "1.0", _FAT)
        registry.add_wheel("stout", "1.0", _FAT)
        registry.add_tarball("slim", "1.0.0", "module.exports = 'slim'")
        registry.add_tarball("broad", "1.0.0", f"const {_FAT}; module.exports = 'broad'")
        yield registry


@pytest.fixture
def limits() -> PackageLimits:
    return PackageLimits(mb=1, total_mb=100)


@pytest.fixture
def codexec(make_server: MakeServer, packages: Registry, limits: PackageLimits) -> ToolServer:
    return make_server(pip_index=f"{packages.url}/simple", npm_registry=f"{packages.url}/", packages=limits)


@pytest.mark.parametrize(
    ("language", "big", "small", "use"),
    [
        ("python", "fat", "thin", "import thin; print(thin.WORD)"),
        ("node", "broad", "slim", "console.log(require('slim'))"),
    ],
)
async def test_a_package_that_does_not_fit_is_not_there_afterwards_and_what_fits_still_is(
    call: CallTool, packages: Registry, code_config: CodeConfig, language: str, big: str, small: str, use: str
) -> None:
    await call("install_package", language=language, package=small)
    with pytest.raises(TooLarge, match=f"{big} is not installed, it does not fit") as refused:
        await call("install_package", language=language, package=big)
    assert "1 MB is what they may take" in refused.value.message
    assert "CODEXEC_MAX_PACKAGES_MB" in (refused.value.hint or "")
    assert list((code_config.data / "packages").rglob(f"*{big}*")) == []
    asked = packages.asked.copy()
    await call("install_package", language=language, package=small)
    assert f"/{big}" not in packages.asked[len(asked) :], "it is not fetched again with another one"
    assert (await call("execute_code", language=language, code=use)).stdout in ("thin\n", "slim\n")


class TestAllTogether:
    @pytest.fixture
    def limits(self) -> PackageLimits:
        return PackageLimits(mb=50, total_mb=5)

    async def test_what_is_installed_for_others_counts_and_a_closed_session_counts_no_more(
        self, call_as: CallAs, packages: Registry
    ) -> None:
        session = (await call_as("one", "start_session", language="python")).session_id
        await call_as("one", "install_package", language="python", package="fat", session_id=session)
        with pytest.raises(TooLarge, match="stout is not installed, it does not fit: all packages together") as refused:
            await call_as("two", "install_package", language="python", package="stout")
        assert "Close sessions" in (refused.value.hint or "")
        await call_as("one", "close_session", session_id=session)
        await call_as("two", "install_package", language="python", package="stout")
        used = await call_as("two", "execute_code", language="python", code="import stout; print(len(stout.WORD))")
        assert used.stdout == "1600000\n"

    async def test_where_all_is_full_nothing_is_fetched(
        self, call: CallTool, packages: Registry, code_config: CodeConfig
    ) -> None:
        other = CodeFolders(code_config.data).agent_packages("other")
        (other / "python" / "much").write_bytes(b"x" * 9_000_000)
        asked = len(packages.asked)
        with pytest.raises(TooLarge, match="All packages together take 9 MB already, and 5 MB is what they may take"):
            await call("install_package", language="python", package="thin")
        assert len(packages.asked) == asked


def test_what_a_killed_server_left_is_cleared_away_and_what_a_running_one_uses_is_not(tmp_path: Path) -> None:
    left = subprocess.Popen(
        [sys.executable, "-c", _LEAVE, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert left.stdout is not None
    name = left.stdout.readline().strip()
    first = CodeFolders(tmp_path)
    mine = first.new_run()
    assert set(os.listdir(tmp_path / "runs")) == {name, mine.root.name}
    left.send_signal(signal.SIGKILL)
    left.communicate()
    again = CodeFolders(tmp_path).environments()
    assert again == [mine.packages]
    assert os.listdir(tmp_path / "runs") == [mine.root.name]


def test_a_leftover_is_cleared_away_although_its_process_number_is_in_use_again(tmp_path: Path) -> None:
    left = tmp_path / "runs" / f"{os.getpid()}-00ff" / "packages"
    left.mkdir(parents=True)
    assert CodeFolders(tmp_path).environments() == []
    assert not left.exists()
