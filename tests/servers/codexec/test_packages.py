"""Packages, fetched from an index and a registry that the tests run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from annabelle.core.errors import InvalidArguments, NotFound, RetryByModel
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.packages import check_package_name
from annabelle.servers.kit import ToolServer
from servers.codexec.calling import CallAs, MakeServer
from servers.codexec.registries import Registry, serving
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-EXE")


@pytest.fixture(scope="module")
def packages() -> Iterator[Registry]:
    with serving() as registry:
        registry.add_wheel("greeting", "1.0", "WORD = 'hello'")
        registry.add_wheel("greeting", "2.0", "WORD = 'good day'")
        registry.add_tarball("shout", "1.2.3", "module.exports = (word) => word.toUpperCase()")
        registry.add_tarball("hooked", "1.0.0", "module.exports = 1", {"postinstall": "touch hooked-was-here"})
        yield registry


@pytest.fixture
def codexec(make_server: MakeServer, packages: Registry) -> ToolServer:
    return make_server(pip_index=f"{packages.url}/simple", npm_registry=f"{packages.url}/")


@pytest.fixture
def careful_umask() -> Iterator[None]:
    """As a service is often run: files it makes are for itself alone."""
    before = os.umask(0o077)
    yield
    os.umask(before)


async def test_a_python_package_is_there_for_the_agent_that_installed_it(call_as: CallAs, careful_umask: None) -> None:
    installed = await call_as("one", "install_package", language="python", package="greeting==1.0")
    code = "import greeting\nprint(greeting.WORD)"
    mine = await call_as("one", "execute_code", language="python", code=code)
    other = await call_as("two", "execute_code", language="python", code=code)
    assert installed.to_text() == "greeting==1.0 is installed for all later runs."
    assert mine.stdout == "hello\n"
    assert "ModuleNotFoundError" in other.stderr


async def test_a_package_for_a_session_is_there_at_once_and_only_there(call: CallTool) -> None:
    session = (await call("start_session", language="python")).session_id
    await call("install_package", language="python", package="greeting", session_id=session)
    inside = await call("send_to_session", session_id=session, code="import greeting\ngreeting.WORD")
    outside = await call("execute_code", language="python", code="import greeting")
    assert inside.value == "'good day'"
    assert "ModuleNotFoundError" in outside.stderr


async def test_a_python_without_pip_gets_one_from_its_bundle(call: CallTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annabelle.servers.codexec.languages._has_pip", lambda prefix: False)
    await call("install_package", language="python", package="greeting<2")
    assert (
        await call("execute_code", language="python", code="import greeting; print(greeting.WORD)")
    ).stdout == "hello\n"


async def test_a_node_package_can_be_required_and_imported(call: CallTool) -> None:
    await call("install_package", language="node", package="shout@1.2.3")
    required = await call("execute_code", language="node", code="console.log(require('shout')('a'))")
    imported = await call("execute_code", language="node", code="import shout from 'shout';\nconsole.log(shout('b'))")
    session = await call("send_to_session", language="node", code="require('shout')('c')")
    assert (required.stdout, imported.stdout, session.value) == ("A\n", "B\n", "'C'")


async def test_what_a_package_brings_along_is_not_run_when_it_is_installed(call: CallTool) -> None:
    session = (await call("start_session", language="node")).session_id
    await call("install_package", language="node", package="hooked", session_id=session)
    look = "require('fs').readdirSync('/packages/session/node/node_modules/hooked').sort().join()"
    assert (await call("send_to_session", session_id=session, code=look)).value == "'index.js,package.json'"


async def test_a_package_that_is_not_there_is_a_clear_answer(call: CallTool, packages: Registry) -> None:
    with pytest.raises(RetryByModel, match="could not be installed") as caught:
        await call("install_package", language="python", package="nowhere-to-be-found")
    assert "No matching distribution" in caught.value.message
    assert packages.url not in caught.value.message


async def test_the_session_must_be_there_and_speak_the_language(call: CallTool) -> None:
    session = (await call("start_session", language="python")).session_id
    with pytest.raises(InvalidArguments, match="speaks python"):
        await call("install_package", language="node", package="shout", session_id=session)
    with pytest.raises(NotFound):
        await call("install_package", language="node", package="shout", session_id="ses_none")


async def test_a_script_gets_its_packages_before_its_first_run(call: CallTool, packages: Registry) -> None:
    code = "import greeting\nprint(greeting.WORD)"
    await call("save_script", name="greet", description="", language="python", code=code, packages=["greeting==1.0"])
    first, same = await asyncio.gather(call("run_script", name="greet"), call("run_script", name="greet"))
    assert same.stdout == "hello\n", "a run that begins meanwhile waits for them"
    asked = len(packages.asked)
    second = await call("run_script", name="greet")
    assert (first.stdout, second.stdout) == ("hello\n", "hello\n")
    assert len(packages.asked) == asked, "the second run fetches nothing"


async def test_packages_that_could_not_be_fetched_are_fetched_by_the_next_run(
    call: CallTool, packages: Registry
) -> None:
    code = "console.log(require('later'))"
    await call("save_script", name="late", description="", language="node", code=code, packages=["later"])
    with pytest.raises(RetryByModel, match="could not be installed"):
        await call("run_script", name="late")
    packages.add_tarball("later", "1.0.0", "module.exports = 'here'")
    assert (await call("run_script", name="late")).stdout == "here\n"


async def test_other_packages_of_a_script_take_the_place_of_those_it_had(
    call: CallTool, code_config: CodeConfig
) -> None:
    saved = {"name": "turn", "description": "", "code": "import greeting\nprint(greeting.WORD)"}
    await call("save_and_run_script", language="python", packages=["greeting==1.0"], **saved)
    newer = await call("save_and_run_script", language="python", packages=["greeting==2.0"], **saved)
    saved["code"] = "console.log(require('shout')('a'))"
    with pytest.raises(RetryByModel, match="could not be installed"):  # there is no such package for Node
        await call("save_and_run_script", language="node", packages=["greeting"], **saved)
    other = await call("save_and_run_script", language="node", packages=["shout"], **saved)
    assert (newer.stdout, other.stdout) == ("good day\n", "A\n")
    assert len(list((code_config.data / "packages").glob("script-turn-*"))) == 1


@pytest.mark.incident("I-05")
@pytest.mark.parametrize(
    ("language", "package"),
    [
        ("python", "--find-links=evil"), ("python", "-r/etc/passwd"), ("python", "http://evil/x.whl"),
        ("python", "git+https://evil/x"), ("python", "./local"), ("python", "/tmp/x.whl"), ("python", "a; rm -rf /"),
        ("python", "name @ file:///etc"), ("python", "a b"), ("python", ""), ("python", "a\nb"), ("python", "a" * 201),
        ("python", "päckage"), ("node", "--registry=http://evil"), ("node", "../local"), ("node", "file:x"),
        ("node", "a@file:../x"), ("node", "user/repository"), ("node", "a@http://evil"), ("node", "a@npm:b"),
        ("node", "a && b"), ("node", "@scope"), ("node", "."), ("node", "a@-g"),
    ],
)  # fmt: skip
def test_only_names_and_versions_are_packages(language: str, package: str) -> None:
    with pytest.raises(InvalidArguments, match="not the name of a package"):
        check_package_name(language, package)


@pytest.mark.parametrize(
    ("language", "package"),
    [
        ("python", "requests"), ("python", "requests[socks,security]==2.32.0"), ("python", "numpy>=1.26,<3"),
        ("python", "zope.interface~=7.0"), ("python", "x==1.0.dev1+local"), ("node", "lodash"),
        ("node", "lodash@4.17.21"), ("node", "@types/node@^20.1.0"), ("node", "left-pad@latest"),
    ],
)  # fmt: skip
def test_names_with_versions_are_taken_as_they_are(language: str, package: str) -> None:
    assert check_package_name(language, f" {package} ") == package
