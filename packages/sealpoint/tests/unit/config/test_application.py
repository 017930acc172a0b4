# SPDX-License-Identifier: Apache-2.0
"""An application is all of its modules, found from files; what is installed is a version."""

import importlib
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealpoint.config import (
    Application,
    ModuleOrigin,
    is_application_file,
    place_in_project,
    read_application,
    read_data_files,
)
from sealpoint.config import _application_code as application
from sealpoint.config import _code_cache as code_cache
from sealpoint.config import _installed_packages as installed
from sealpoint.errors import WorldInvalid
from sealpoint.world import Syntax, read_syntax

_Read = Callable[..., Application]


@pytest.fixture
def read(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[_Read]:
    """Reads an application from a folder, as a process does that has just started."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

    def found(*modules: str, places: tuple[str, ...] = ("",)) -> Application:
        application._READ.clear()
        installed._installed_in.cache_clear()
        is_application_file.cache_clear()
        importlib.invalidate_caches()
        with monkeypatch.context() as patch:
            for place in reversed(places):
                patch.syspath_prepend(str(tmp_path / place))
            return read_application(ModuleOrigin(name, None) for name in modules)

    yield found
    application._READ.clear()
    installed._installed_in.cache_clear()
    is_application_file.cache_clear()


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


_PACKAGE = {
    "sp_shop/__init__.py": "",
    "sp_shop/agent.py": "from . import desk\nimport sp_lib.sums as sums\n",
    "sp_shop/desk.py": "from sp_shop.inner import late\n",
    "sp_shop/inner/__init__.py": "",
    "sp_shop/inner/late.py": "def run():\n    import sp_shop.inner.later\n",
    "sp_shop/inner/later.py": "LATER = True\n",
    "sp_shop/jobs.py": "JOBS = 1\n",
    "sp_lib/__init__.py": "",
    "sp_lib/sums.py": "def total(): ...\n",
    "sp_lib/unused.py": "UNUSED = 1\n",
    "sp_other/__init__.py": "",
    "script.py": "import sp_other\n",
}


def test_a_package_counts_whole_and_so_does_what_it_imports(tmp_path: Path, read: _Read) -> None:
    """What the agent leads to is its code; other modules, and those beside it, are the rest."""
    _write(tmp_path, _PACKAGE)
    found = read("sp_shop.agent")

    assert set(found.code) == {
        *("sp_shop", "sp_shop.agent", "sp_shop.desk", "sp_shop.inner", "sp_shop.inner.late"),
        *("sp_shop.inner.later", "sp_lib", "sp_lib.sums"),
    }
    assert set(found.rest) == {"sp_shop.jobs", "sp_lib.unused", "script", "sp_other"}
    assert found.code["sp_lib.sums"].definitions.keys() == {"total"}


def test_of_a_module_without_a_package_the_folder_counts(tmp_path: Path, read: _Read) -> None:
    """The modules beside it may be loaded by a name that nobody can read."""
    _write(tmp_path, {**_PACKAGE, "other.py": "X = 1\n", "notes.txt": "no module"})
    found = read("script")

    assert set(found.code) == {"script", "sp_other"}
    assert set(found.rest) == {"other"}


def test_what_is_imported_from_elsewhere_is_read_too(tmp_path: Path, read: _Read) -> None:
    """By a relative name, from a package above, in a namespace of two folders, or from a zip."""
    _write(
        tmp_path,
        {
            "app/sp_shop/__init__.py": "",
            "app/sp_shop/deep/__init__.py": "",
            "app/sp_shop/deep/agent.py": "from ... import nothing\nfrom ..near import x\n",
            "app/sp_shop/near.py": "from sp_space import one, two\nimport sp_zipped.inside\n",
            "first/sp_space/one.py": "ONE = 1\n",
            "second/sp_space/two.py": "TWO = 2\n",
        },
    )
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as file:
        file.writestr("sp_zipped.py", "ZIPPED = 1\n")
    places = ("app", "first", "second", "zipped.zip")
    found = read("sp_shop.deep.agent", places=places)
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as file:
        file.writestr("sp_zipped.py", "ZIPPED = 2\n")

    assert {"sp_shop.near", "sp_space.one", "sp_space.two", "sp_zipped"} <= set(found.code)
    assert read("sp_shop.deep.agent", places=places).code != found.code


def _distribution(folder: Path, version: str, *, text: str = "X = 1\n", url: bool = False) -> None:
    info = folder / f"sp_dist-{version}.dist-info"
    _write(
        folder,
        {
            "sp_dist/__init__.py": text,
            f"{info.name}/METADATA": f"Name: sp-dist\nVersion: {version}\n"
            "Requires-Dist: Sp_Needed>=1; python_version > '3'\n"
            "Requires-Dist: sp-extra; extra == 'more'\n\nRequires-Dist: no-header\n",
            f"{info.name}/RECORD": "sp_dist/__init__.py,,\n",
            "sp_needed-3.dist-info/METADATA": "Name: sp-needed\nVersion: 3\n",
            "sp_needed-3.dist-info/RECORD": "sp_needed.py,,\n",
            "sp_needed.py": "",
            "sp_extra-4.dist-info/METADATA": "Name: sp-extra\nVersion: 4\n",
            "sp_extra-4.dist-info/RECORD": "sp_extra.py,,\n",
        },
    )
    if url:
        (info / "direct_url.json").write_text("{}")


def test_what_is_installed_counts_by_distribution_and_version(tmp_path: Path, read: _Read) -> None:
    """With what it always requires, and not by its files."""
    _write(tmp_path, {"app/sp_agent.py": "def run():\n    import sp_dist.inside\n"})
    worlds: list[Application] = []
    for version, text in (("1.0", "X = 1\n"), ("1.0", "X = 2\n"), ("1.1", "X = 1\n")):
        folder = tmp_path / f"{len(worlds)}-packages"
        _distribution(folder, version, text=text)
        worlds.append(read("sp_agent", places=("app", folder.name)))

    assert [dict(each.versions) for each in worlds] == [
        {"sp-dist": "1.0", "sp-needed": "3"},
        {"sp-dist": "1.0", "sp-needed": "3"},
        {"sp-dist": "1.1", "sp-needed": "3"},
    ]
    assert [set(each.code) for each in worlds] == [{"sp_agent"}] * 3


def test_what_was_installed_from_a_folder_counts_by_its_files(tmp_path: Path, read: _Read) -> None:
    """Its version stays the same whatever somebody edits there."""
    _write(tmp_path, {"app/sp_agent.py": "import sp_dist\n"})
    found: list[Application] = []
    for text in ("X = 1\n", "X = 2\n"):
        folder = tmp_path / f"{len(found)}-packages"
        _distribution(folder, "1.0", text=text, url=True)
        found.append(read("sp_agent", places=("app", folder.name)))

    assert found[0].versions == found[1].versions
    assert found[0].code["sp_dist"] != found[1].code["sp_dist"]


def test_a_file_that_somebody_put_among_the_packages_counts(tmp_path: Path, read: _Read) -> None:
    """No distribution says what is in it."""
    _write(tmp_path, {"app/sp_agent.py": "import sp_stray\n", "x-packages/sp_stray.py": "X = 1\n"})
    _distribution(tmp_path / "x-packages", "1.0")
    found = read("sp_agent", places=("app", "x-packages"))

    assert set(found.code) == {"sp_agent", "sp_stray"}


def test_the_library_of_python_is_no_part(tmp_path: Path, read: _Read) -> None:
    """Nor is a module that is not there."""
    _write(tmp_path, {"sp_agent.py": "import json, email.message, sp_missing\nimport sys\n"})
    found = read("sp_agent", "json", "sp_missing", "builtins")

    assert set(found.code) | set(found.rest) == {"sp_agent"}
    assert dict(found.versions) == {}


def test_compiled_modules_count_by_their_bytes(tmp_path: Path, read: _Read) -> None:
    """Beside a source as well, and what Python caches by itself does not."""
    _write(tmp_path, {"sp_app/__init__.py": "", "sp_app/a.py": "X = 1\n", "sp_app/b.so": "1"})
    before = read("sp_app.a")
    _write(tmp_path, {"sp_app/__pycache__/a.cpython-311.pyc": "cached"})
    cached = read("sp_app.a")
    _write(tmp_path, {"sp_app/a.so": "hidden"})
    hidden = read("sp_app.a")
    _write(tmp_path, {"sp_app/b.so": "2"})
    changed = read("sp_app.a")

    assert cached == before
    assert hidden.code["sp_app.a"] != before.code["sp_app.a"]
    assert changed.rest["sp_app.b"] != hidden.rest["sp_app.b"]


def test_a_second_process_reads_no_syntax(
    tmp_path: Path, read: _Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a file says is kept by its content; another content is read."""
    _write(tmp_path, _PACKAGE)
    first = read("sp_shop.agent")
    asked: list[bytes] = []

    def read_and_note(data: bytes) -> Syntax | None:
        asked.append(data)
        return read_syntax(data)

    monkeypatch.setattr(application, "read_syntax", read_and_note)
    second = read("sp_shop.agent")

    assert second == first
    assert asked == []

    _write(tmp_path, {"sp_shop/jobs.py": "JOBS = 2\n"})
    third = read("sp_shop.agent")

    assert asked == [b"JOBS = 2\n"]
    assert third.rest["sp_shop.jobs"] != first.rest["sp_shop.jobs"]
    assert third.code == first.code


@pytest.mark.parametrize("fault", ["garbage", "empty", "other form", "open to others", "missing"])
def test_a_cache_that_cannot_be_read_is_none(tmp_path: Path, read: _Read, fault: str) -> None:
    """The application is read again, and nothing else happens."""
    _write(tmp_path, _PACKAGE)
    first = read("sp_shop.agent")
    place = Path(os.environ["XDG_CACHE_HOME"], "sealpoint")
    files = list(place.iterdir())
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        if fault == "open to others":
            file.chmod(0o666)
        elif fault == "missing":
            file.unlink()
        else:
            forms = {"garbage": b"\xc1\xff", "empty": b"", "other form": b"\x81\xa1a\x01"}
            file.write_bytes(forms[fault])
    if fault == "missing":
        place.rmdir()
        place.write_text("in the way")

    assert files
    assert read("sp_shop.agent") == first
    if fault == "missing":
        place.unlink()


def test_caches_do_not_pile_up(
    tmp_path: Path, read: _Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go when there are too many."""
    monkeypatch.setattr(code_cache, "_FILES_MAX", 4)
    for number in range(4):
        _write(tmp_path, {f"{number}/sp_app_{number}.py": f"X = {number}\n"})
        read(f"sp_app_{number}", places=(str(number),))

    assert len(list(Path(os.environ["XDG_CACHE_HOME"], "sealpoint").iterdir())) == 4


def test_an_application_is_read_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that a deploy replaces under a running worker is not what runs."""
    monkeypatch.syspath_prepend(str(tmp_path))
    _write(tmp_path, {"sp_once.py": "X = 1\n"})
    origin = ModuleOrigin("sp_once", str(tmp_path / "sp_once.py"))
    first = read_application([origin])
    _write(tmp_path, {"sp_once.py": "X = 2\n"})

    assert read_application([origin]) is first


def test_a_program_that_was_loaded_by_its_path_counts(tmp_path: Path, read: _Read) -> None:
    """As a server of graphs loads it, under a name that no import finds."""
    _write(tmp_path, {"graphs/agent.py": "import sp_other\n", "sp_other.py": "X = 1\n"})
    read()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        file = str(tmp_path / "graphs" / "agent.py")
        found = read_application([ModuleOrigin("loaded.by.path", file)])

    assert set(found.code) == {"agent", "sp_other"}


@pytest.mark.parametrize("bound", ["_FILES_MAX", "_BYTES_MAX"])
def test_too_much_is_refused(
    tmp_path: Path, read: _Read, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """With what to do about it, and no half of an application."""
    _write(tmp_path, _PACKAGE)
    monkeypatch.setattr(application, bound, 3)
    with pytest.raises(WorldInvalid, match=r"more than 3 modules|too large"):
        read("sp_shop.agent")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, read: _Read) -> None:
    """The world would not be that of the application."""
    _write(tmp_path, _PACKAGE)
    (tmp_path / "sp_shop" / "jobs.py").chmod(0)
    with pytest.raises(WorldInvalid, match="cannot be read"):
        read("sp_shop.agent")


def test_data_files_are_told_by_name(tmp_path: Path) -> None:
    """A short text as it is, anything else by its digest; folders with all that is in them."""
    _write(tmp_path, {"prompts/a.md": "A", "prompts/deep/b.md": "B", "one.txt": "x" * 5_000})
    (tmp_path / "two.bin").write_bytes(b"\xff")
    found = read_data_files([tmp_path / "prompts", str(tmp_path / "one.txt"), tmp_path / "two.bin"])

    assert found["prompts/a.md"] == "A"
    assert found["prompts/deep/b.md"] == "B"
    assert found["one.txt"].startswith("sha256:")
    assert found["two.bin"].startswith("sha256:")
    assert set(found) == {"prompts/a.md", "prompts/deep/b.md", "one.txt", "two.bin"}


def test_data_files_that_are_missing_or_alike_are_refused(tmp_path: Path) -> None:
    """Nothing is left out in silence."""
    _write(tmp_path, {"a/x.md": "A", "b/x.md": "B"})
    with pytest.raises(WorldInvalid, match="cannot be read"):
        read_data_files([tmp_path / "missing.md"])
    with pytest.raises(WorldInvalid, match="twice"):
        read_data_files([tmp_path / "a" / "x.md", tmp_path / "b" / "x.md"])


def test_own_files_are_told_from_installed_ones(tmp_path: Path) -> None:
    """Those of Python, of what is installed, and of Sealpoint are not the application's."""
    assert is_application_file(str(tmp_path / "agent.py"))
    assert is_application_file(__file__)
    assert not is_application_file(importlib.__file__ or "")
    assert not is_application_file(pytest.__file__)
    assert not is_application_file(application.__file__)
    assert not is_application_file("agent-that-is-not-here.py")


@pytest.mark.parametrize("text", ["/search", "/" + "x" * 400, "/a\0b", "/proc/1/cwd/x", "app/x"])
def test_what_lies_in_no_project_has_no_place_in_one(text: str) -> None:
    """A text that is no path, or one that nobody may look at, is told as it is."""
    assert place_in_project(text) is None


def test_a_path_in_a_package_has_its_place_around_the_outermost(tmp_path: Path) -> None:
    """Of a package in a package as well, whatever the project around them is."""
    _write(tmp_path, {"src/app/__init__.py": "", "src/app/inner/__init__.py": "", "setup.py": ""})
    inner = tmp_path / "src" / "app" / "inner" / "data"

    assert place_in_project(str(inner)) == "app/inner/data"
    assert place_in_project(str(tmp_path / "data" / "x")) == "data/x"
