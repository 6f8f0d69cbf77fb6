"""Built-in servers are found by their manifests."""

from pathlib import Path

import pytest

from annabelle.core.errors import ConfigMistake
from annabelle.core.settings import Settings
from annabelle.toolbox.config import ManifestFolder, ToolboxLimits, builtin_servers
from annabelle.toolbox.manifest import find_builtins, find_disabled


@pytest.fixture
def folder(tmp_path: Path) -> ManifestFolder:
    return ManifestFolder(tmp_path, "some.package")


def add(folder: ManifestFolder, name: str, text: str) -> None:
    (folder.path / name).mkdir()
    (folder.path / name / "manifest.toml").write_text(text)


@pytest.mark.req("EXT-01")
def test_a_folder_with_a_manifest_is_a_server(folder: ManifestFolder) -> None:
    web = 'name = "web"\nlabel = "Web"\ntimeout = 60\ngroup = "Net"\nenv = ["WEB_KEY"]\nsensitive = true\n'
    add(folder, "web", f"{web}provenance = true")
    add(folder, "guard", 'name = "guard"\nlabel = "Guardian"\nrole = "guardian"')
    (folder.path / "kit").mkdir()
    guard, web = find_builtins([folder], {}, 30)
    assert (guard.profile.name, guard.profile.role, guard.profile.timeout_seconds) == ("guard", "guardian", 30)
    assert (web.module, web.variables, web.profile.sensitive) == ("some.package.web.__main__", ("WEB_KEY",), True)
    assert web.profile.timeout_seconds == 60
    assert (web.profile.provenance, guard.profile.provenance) == (True, False)


@pytest.mark.req("EXT-01")
@pytest.mark.parametrize(("value", "found"), [("false", 0), ("FALSE", 0), ("0", 0), ("true", 1), ("", 1)])
def test_a_variable_disables_a_server(folder: ManifestFolder, value: str, found: int) -> None:
    add(folder, "my-web", 'name = "my-web"\nlabel = "Web"')
    assert len(find_builtins([folder], {"MY_WEB_MCP_ENABLED": value}, 30)) == found
    assert len(find_disabled([folder], {"MY_WEB_MCP_ENABLED": value})) == 1 - found


@pytest.mark.req("RTR-04")
@pytest.mark.parametrize(("value", "seconds"), [("5", 5.0), ("0.5", 0.5), ("45000", 45.0)])
def test_a_variable_sets_the_timeout(folder: ManifestFolder, value: str, seconds: float) -> None:
    add(folder, "web", 'name = "web"\nlabel = "Web"\ntimeout = 60')
    [web] = find_builtins([folder], {"WEB_MCP_TIMEOUT": value}, 30)
    assert web.profile.timeout_seconds == seconds


@pytest.mark.req("RTR-04")
def test_the_default_timeout_reaches_every_built_in_server_that_sets_none() -> None:
    def timeouts(environment: dict[str, str], default: float) -> dict[str, float]:
        found = find_builtins([builtin_servers()], environment, default)
        return {server.profile.name: server.profile.timeout_seconds for server in found}

    assert ToolboxLimits().call_seconds == Settings.model_fields["tool_timeout_seconds"].default == 30
    by_default = timeouts({}, 30)
    reached = {name for name, seconds in timeouts({}, 12).items() if seconds == 12}
    assert reached == {name for name, seconds in by_default.items() if seconds == 30} == {"filer", "guardian", "notes"}
    assert by_default["web"] == 90, "a wait may take 60 seconds, and the browser has to start first"
    assert timeouts({"WEB_MCP_TIMEOUT": "7", "FILER_MCP_TIMEOUT": "8"}, 12) == {
        **timeouts({}, 12),
        "web": 7,
        "filer": 8,
    }


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan", "inf"])
def test_a_timeout_that_is_none_is_a_mistake(folder: ManifestFolder, value: str) -> None:
    add(folder, "web", 'name = "web"\nlabel = "Web"')
    with pytest.raises(ConfigMistake, match="WEB_MCP_TIMEOUT"):
        find_builtins([folder], {"WEB_MCP_TIMEOUT": value}, 30)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "web', "TOML"),
        ('label = "Web"', "name"),
        ('name = "we b"\nlabel = "Web"', "name"),
        ('name = "web"\nlabel = "Web"\nlabbel = "x"', "labbel"),
        ('name = "web"\nlabel = "Web"\nrole = "king"', "role"),
    ],
)
def test_a_bad_manifest_names_its_file_and_field(folder: ManifestFolder, text: str, says: str) -> None:
    add(folder, "web", text)
    with pytest.raises(ConfigMistake, match=says) as caught:
        find_builtins([folder], {}, 30)
    assert "manifest.toml" in caught.value.message


def test_two_servers_of_one_name_are_a_mistake(folder: ManifestFolder) -> None:
    add(folder, "a", 'name = "web"\nlabel = "Web"')
    add(folder, "b", 'name = "web"\nlabel = "Web"')
    with pytest.raises(ConfigMistake, match="Two servers"):
        find_builtins([folder], {}, 30)
