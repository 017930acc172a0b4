# SPDX-License-Identifier: Apache-2.0
"""Settings: argument, environment, file, default, in this order; the file is strict."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import platformdirs
import pytest

from sealpoint.config import Settings, load_settings
from sealpoint.errors import ConfigError, DirectoryUnusable, KeyFileUnsafe, NameInvalid


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory of its own, and none of the variables that the machine may have set."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("STORE", "IDENTITY", "NAMESPACE", "CONFIG_DIR", "STATE_DIR"):
        monkeypatch.delenv(f"SEALPOINT_{name}", raising=False)
    yield tmp_path
    assert not (tmp_path / ".config").exists(), "loading settings must write nothing"


def _config(directory: Path, text: str | bytes) -> Path:
    path = directory / "config.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


def test_everything_has_a_default_but_the_store() -> None:
    """Without any setting there is no store, and directories are the platform's."""
    assert load_settings() == Settings(
        store=None,
        identity=None,
        namespace="default",
        config_dir=platformdirs.user_config_path("sealpoint"),
        state_dir=platformdirs.user_state_path("sealpoint"),
    )


_FILE = 'store = "file-store"\nidentity = "file-identity"\nnamespace = "file-namespace"\n'


def _environ(directory: Path) -> dict[str, str]:
    return {
        "SEALPOINT_STORE": "variable-store",
        "SEALPOINT_IDENTITY": "variable-identity",
        "SEALPOINT_NAMESPACE": "variable-namespace",
        "SEALPOINT_CONFIG_DIR": str(directory),
        "SEALPOINT_STATE_DIR": str(directory / "state"),
    }


def test_the_file_comes_before_the_default(tmp_path: Path) -> None:
    """What `config.toml` says holds when nothing else is said."""
    _config(tmp_path, _FILE)
    found = load_settings(config_dir=tmp_path, environ={})

    assert (found.store, found.identity, found.namespace) == (
        "file-store",
        "file-identity",
        "file-namespace",
    )


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    """A variable wins over the file, one by one, and can say where the file is."""
    _config(tmp_path, _FILE)
    found = load_settings(environ=_environ(tmp_path))
    part = load_settings(
        environ={"SEALPOINT_CONFIG_DIR": str(tmp_path), "SEALPOINT_NAMESPACE": "n"}
    )

    assert found == Settings(
        store="variable-store",
        identity="variable-identity",
        namespace="variable-namespace",
        config_dir=tmp_path,
        state_dir=tmp_path / "state",
    )
    assert (part.store, part.identity, part.namespace) == ("file-store", "file-identity", "n")


def test_an_argument_comes_before_the_environment(tmp_path: Path) -> None:
    """What the program says wins over everything."""
    found = load_settings(
        store="s",
        identity="i",
        namespace="n",
        config_dir=tmp_path / "c",
        state_dir=str(tmp_path / "t"),
        environ=_environ(tmp_path),
    )

    assert found == Settings(
        store="s",
        identity="i",
        namespace="n",
        config_dir=tmp_path / "c",
        state_dir=tmp_path / "t",
    )


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    """Setting a variable to nothing is how many tools unset it."""
    _config(tmp_path, _FILE)
    empty = dict.fromkeys(_environ(tmp_path), "")

    assert load_settings(config_dir=tmp_path, environ=empty) == load_settings(
        config_dir=tmp_path, environ={}
    )
    assert load_settings(environ=empty) == load_settings(environ={})


def test_the_environment_of_the_process_is_read_when_none_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read when settings are loaded, not when the module was imported."""
    monkeypatch.setenv("SEALPOINT_STORE", "memory:")

    assert load_settings().store == "memory:"
    assert load_settings(environ={}).store is None


def test_directories_are_expanded_and_absolute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde is the home directory, and a relative path starts at the current one."""
    monkeypatch.chdir(home)
    found = load_settings(
        config_dir="~/c", environ={"SEALPOINT_STATE_DIR": "~/s", "SEALPOINT_CONFIG_DIR": "no"}
    )
    relative = load_settings(config_dir="c", environ={"SEALPOINT_STATE_DIR": "s"})

    assert (found.config_dir, found.state_dir) == (home / "c", home / "s")
    assert (relative.config_dir, relative.state_dir) == (home / "c", home / "s")


@pytest.mark.parametrize("setting", ["config_dir", "state_dir", "secrets_dir"])
@pytest.mark.parametrize("path", ["", "a\0b", "~no-such-user-here/a"])
def test_a_path_that_is_none_is_refused(setting: str, path: str) -> None:
    """An argument that is empty or cannot be a path is an error that names the setting."""
    with pytest.raises(ConfigError, match=setting):
        load_settings(**cast("Any", {setting: path}), environ={})


@pytest.mark.parametrize("name", ["", "Worker", "../worker"])
def test_an_identity_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    """Wherever the name comes from, it is checked before it becomes the name of a file."""
    with pytest.raises(NameInvalid):
        load_settings(identity=name, environ={})
    if name:
        _config(tmp_path, f'identity = "{name}"')
        with pytest.raises(NameInvalid):
            load_settings(config_dir=tmp_path, environ={})
        with pytest.raises(NameInvalid):
            load_settings(environ={"SEALPOINT_IDENTITY": name})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("shop = 'memory:'", "unknown key 'shop'; known are identity, namespace, store"),
        ("config_dir = '/a'", "unknown key 'config_dir'"),
        ("[store]\nurl = 'memory:'", "expected text as store, found dict"),
        ("store = 1", "expected text as store, found int"),
        ("identity = ['a']", "expected text as identity, found list"),
        ("namespace = true", "expected text as namespace, found bool"),
        ("namespace = ''", "expected text as namespace, found no text"),
        ("store = memory:", "not valid TOML"),
        ("store = 'a'\nstore = 'b'", "not valid TOML"),
        ("store", "not valid TOML"),
        (b"store = '\xff'", "not valid TOML"),
        (b"\xff\xfes\0", "not valid TOML"),
        ("a = " + "[" * 20_000, "not valid TOML"),
        ("#" * (64 * 1024 + 1), "larger than 65536 bytes"),
    ],
    ids=range(14),
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    """A misspelt setting is an error that names the file, never one that is ignored."""
    path = _config(tmp_path, text)

    with pytest.raises(ConfigError, match=complaint) as caught:
        load_settings(config_dir=tmp_path, environ={})
    assert str(path) in str(caught.value)


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    """The bound itself is inside."""
    _config(tmp_path, "namespace = 'n'\n".ljust(64 * 1024, "#"))

    assert load_settings(config_dir=tmp_path, environ={}).namespace == "n"


def test_an_empty_file_or_none_says_nothing(tmp_path: Path) -> None:
    """Settings that are not there are the defaults."""
    absent = load_settings(config_dir=tmp_path, environ={})
    _config(tmp_path, "")

    assert load_settings(config_dir=tmp_path, environ={}) == absent
    assert absent.identity is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o664, 0o666])
def test_a_file_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    """Who can change the settings chooses the store and the identity."""
    _config(tmp_path, "").chmod(mode)

    with pytest.raises(KeyFileUnsafe, match=f"found {mode:04o}"):
        load_settings(config_dir=tmp_path, environ={})


def test_a_file_that_others_can_read_is_fine(tmp_path: Path) -> None:
    """Settings are no secret."""
    _config(tmp_path, "namespace = 'n'").chmod(0o644)

    assert load_settings(config_dir=tmp_path, environ={}).namespace == "n"


def test_the_file_and_its_directory_may_be_links(tmp_path: Path) -> None:
    """Many people keep their settings somewhere else; what the link leads to is checked."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "other.toml").write_text("namespace = 'n'")
    (tmp_path / "other.toml").chmod(0o600)
    (tmp_path / "real" / "config.toml").symlink_to(tmp_path / "other.toml")
    (tmp_path / "link").symlink_to("real")

    assert load_settings(config_dir=tmp_path / "link", environ={}).namespace == "n"
    (tmp_path / "other.toml").chmod(0o666)
    with pytest.raises(KeyFileUnsafe, match="0666"):
        load_settings(config_dir=tmp_path / "link", environ={})


def test_a_configuration_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    """A file, something below a file, or a directory that others can change."""
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    for name, complaint in (
        ("file", "expected a directory, found a file"),
        ("file/below", "Not a directory"),
        ("open", "only its owner writes, found 0777"),
    ):
        with pytest.raises(DirectoryUnusable, match=complaint):
            load_settings(config_dir=tmp_path / name, environ={})
