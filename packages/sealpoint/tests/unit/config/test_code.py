# SPDX-License-Identifier: Apache-2.0
"""Versions, sources and revisions are found without importing or starting anything."""

import hashlib
import importlib.metadata
import sys
from pathlib import Path

import pytest

from sealpoint.config import code_of
from sealpoint.errors import WorldInvalid
from sealpoint.world import Code, read_syntax

_ONE, _TWO = "1a" * 20, "2b" * 20
_RUN = "raise RuntimeError('this module was imported')\n"


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return root


def _digest(text: str) -> str:
    syntax = read_syntax(text)
    assert syntax is not None
    return syntax.digest


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory where an import looks first."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_nothing_asked_is_nothing_told() -> None:
    """Without arguments there is no code to tell of."""
    assert code_of() == Code()


def test_the_version_is_that_of_the_installed_package() -> None:
    """The version comes from the metadata; a package that is not there is an error."""
    assert code_of("pytest").version == importlib.metadata.version("pytest")
    for name in ("no-such-package-of-ours", ""):
        with pytest.raises(WorldInvalid, match="it is not installed"):
            code_of(name)


def test_a_module_is_the_digest_of_its_file_and_is_not_imported(path: Path) -> None:
    """Modules, in packages too, are read where they lie; none of them runs."""
    _write(path, {"sp_mod.py": _RUN, "sp_pkg/__init__.py": _RUN, "sp_pkg/low/deep.py": "# é\n"})
    code = code_of(modules=["sp_mod", "sp_pkg.low.deep"])

    assert code.modules == {"sp_mod": _digest(_RUN), "sp_pkg.low.deep": _digest("# é\n")}
    assert not [name for name in sys.modules if name.startswith("sp_")]


def test_a_package_is_all_its_files_with_their_names(path: Path) -> None:
    """The digest of a package is framed by lengths, over its files in the order of their names."""
    _write(path, {"sp_all/b.py": "B", "sp_all/__init__.py": _RUN, "sp_all/a/c.py": "C"})
    _write(path, {"sp_all/data.txt": "no code"})
    framed = b"".join(
        len(part).to_bytes(8, "big") + part
        for name, text in (("__init__.py", _RUN), ("a/c.py", "C"), ("b.py", "B"))
        for part in (name.encode(), bytes.fromhex(_digest(text)))
    )

    assert code_of(modules=["sp_all"]).modules["sp_all"] == hashlib.sha256(framed).hexdigest()
    assert not [name for name in sys.modules if name.startswith("sp_")]


@pytest.mark.parametrize(
    "files",
    [
        {"sp_x/__init__.py": "", "sp_x/a.py": "1", "sp_x/b.py": "3"},
        {"sp_x/__init__.py": "", "sp_x/a.py": "1; 2", "sp_x/b.py": ""},
        {"sp_x/__init__.py": "", "sp_x/a.py": "1", "sp_x/c.py": "2"},
        {"sp_x/__init__.py": "", "sp_x/a.py": "1"},
        {"sp_x/a.py": "1", "sp_x/b.py": "2"},
        {"sp_x/__init__.py": "", "sp_x/a.py": "1", "sp_x/b.py": "2", "sp_x/d/e.py": ""},
    ],
    ids=["changed", "moved byte", "renamed", "gone", "namespace", "new"],
)
def test_every_change_of_a_package_shows(
    path: Path, tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]
) -> None:
    """A byte that changed or moved, and a file that came, went or was renamed, is other code."""
    _write(path, {"sp_x/__init__.py": "", "sp_x/a.py": "1", "sp_x/b.py": "2"})
    before = code_of(modules=["sp_x"])
    later = _write(tmp_path_factory.mktemp("later"), files)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(later), *[p for p in sys.path if p != str(path)]])

        assert code_of(modules=["sp_x"]) != before


def test_comments_and_formatting_are_no_other_code(path: Path) -> None:
    """A module and a package keep their digests when they are formatted, not when they change."""
    plain = "def f(a, b='x'):\n  return a  # the first\n"
    changed = plain.replace("return a", "return b")
    _write(path, {"sp_f/__init__.py": plain, "sp_f/b.py": plain})
    before = code_of(modules=["sp_f", "sp_f.b"])
    pretty = '# A module.\ndef f(\n    a,\n    b="x",\n):\n    return (a)\n'
    _write(path, {"sp_f/__init__.py": pretty, "sp_f/b.py": pretty})

    assert code_of(modules=["sp_f", "sp_f.b"]) == before
    _write(path, {"sp_f/b.py": changed})
    assert code_of(modules=["sp_f"]) != Code(modules={"sp_f": before.modules["sp_f"]})
    assert code_of(modules=["sp_f.b"]) != Code(modules={"sp_f.b": before.modules["sp_f.b"]})


@pytest.mark.parametrize("data", [b"no python", b"x = 1\0", b"\xff", b"-" * 10_000 + b"1"])
def test_what_has_no_syntax_counts_by_its_bytes(path: Path, data: bytes) -> None:
    """A template, a file of another encoding or one that is nested too deeply is code, too."""
    (path / "sp_bytes.py").write_bytes(data)

    assert code_of(modules=["sp_bytes"]).modules == {
        "sp_bytes": hashlib.sha256(data).hexdigest(),
    }


def test_compiled_files_of_a_package_count_by_their_bytes(path: Path) -> None:
    """A package with a compiled module is told with it; what Python caches changes nothing."""
    source, compiled = ("__init__.py", "x = 1"), ("fast.so", b"\x7fELF")
    _write(path, {"sp_c/__init__.py": source[1]})
    (path / "sp_c" / compiled[0]).write_bytes(compiled[1])
    _write(path, {"sp_c/__pycache__/__init__.cpython-311.pyc": "a cache"})
    digests = (bytes.fromhex(_digest(source[1])), hashlib.sha256(compiled[1]).digest())
    framed = b"".join(
        len(part).to_bytes(8, "big") + part
        for name, digest in zip((source[0], compiled[0]), digests, strict=True)
        for part in (name.encode(), digest)
    )

    assert code_of(modules=["sp_c"]).modules["sp_c"] == hashlib.sha256(framed).hexdigest()


def test_nested_namespace_packages_are_found(path: Path) -> None:
    """Directories without `__init__.py` are packages too, at every level."""
    _write(path, {"sp_n/one/two/mod.py": "x"})

    parts = (b"two/mod.py", bytes.fromhex(_digest("x")))
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)

    assert code_of(modules=["sp_n.one.two.mod", "sp_n.one"]).modules == {
        "sp_n.one.two.mod": _digest("x"),
        "sp_n.one": hashlib.sha256(framed).hexdigest(),
    }


@pytest.mark.parametrize(
    "name",
    ["sp_none", "sp_e.none", "sp_e.mod.none", "sys", "sp_e.so", "", "a..b", ".a", "a/b", "sp_dir"],
)
def test_what_has_no_source_is_refused(path: Path, name: str) -> None:
    """A module that is not there, is compiled, or has no file is an error, never left out."""
    _write(path, {"sp_e/__init__.py": "", "sp_e/mod.py": "", "sp_dir/data.txt": ""})
    # A compiled module hides the source beside it.
    _write(path, {"sp_e/so.abi3.so": "", "sp_e/so.py": ""})

    with pytest.raises(WorldInvalid, match="module"):
        code_of(modules=[name])


def test_one_text_is_no_list_of_modules() -> None:
    """A name alone would be taken for its letters."""
    with pytest.raises(WorldInvalid, match="expected a list of names"):
        code_of(modules="app")


def test_a_link_in_a_circle_ends(path: Path) -> None:
    """A package that lies in itself is refused instead of read for ever."""
    _write(path, {"sp_loop/__init__.py": ""})
    (path / "sp_loop" / "again").symlink_to(path / "sp_loop", target_is_directory=True)

    with pytest.raises(WorldInvalid, match="is in itself"):
        code_of(modules=["sp_loop"])


def test_unreadable_source_is_refused(path: Path) -> None:
    """A file that cannot be read is an error and never left out."""
    (path / "sp_bad").mkdir()
    (path / "sp_bad" / "__init__.py").write_text("")
    (path / "sp_bad" / "gone.py").symlink_to(path / "nowhere.py")

    with pytest.raises(WorldInvalid, match=r"gone\.py cannot be read"):
        code_of(modules=["sp_bad"])


def test_no_repository_is_no_revision(tmp_path: Path) -> None:
    """Only a directory that is in no repository has no revision; none at all is an error."""
    assert code_of(repository=tmp_path).revision is None
    with pytest.raises(WorldInvalid, match="there is no such directory"):
        code_of(repository=tmp_path / "none")


@pytest.mark.parametrize(
    "files",
    [
        {".git/HEAD": f"{_ONE}\n"},
        {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{_ONE}\n"},
        {
            ".git/HEAD": "ref: refs/heads/feature/a\n",
            ".git/packed-refs": f"# pack-refs with: peeled\n{_TWO} refs/heads/feature/aa\n"
            f"{_ONE} refs/heads/feature/a\n^{_TWO}\n",
        },
        {
            ".git/HEAD": "ref: refs/heads/main\n",
            ".git/refs/heads/main": f"{_ONE}\n",
            ".git/packed-refs": f"{_TWO} refs/heads/main\n",
        },
        {
            ".git/HEAD": "ref: refs/heads/alias\n",
            ".git/refs/heads/alias": "ref: refs/heads/main\n",
            ".git/refs/heads/main": f"{_ONE}\n",
        },
        {
            ".git": "gitdir: main/.git/worktrees/w\n",
            "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n",
            "main/.git/worktrees/w/commondir": "../..\n",
            "main/.git/refs/heads/w": f"{_ONE}\n",
            "main/.git/HEAD": f"{_TWO}\n",
        },
        {
            ".git": "gitdir: main/.git/worktrees/w\n",
            "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n",
            "main/.git/worktrees/w/commondir": "../..\n",
            "main/.git/packed-refs": f"{_ONE} refs/heads/w\n",
        },
        {".git": "gitdir: modules/sub\n", "modules/sub/HEAD": f"{_ONE}\n"},
    ],
    ids=[
        "detached",
        "loose",
        "packed",
        "loose first",
        "symbolic",
        "work tree",
        "work tree packed",
        "submodule",
    ],
)
def test_the_revision_is_what_is_checked_out(tmp_path: Path, files: dict[str, str]) -> None:
    """Every way in which git notes it, from the top of the repository and from below."""
    below = _write(tmp_path, files) / "src" / "app"
    below.mkdir(parents=True)

    assert code_of(repository=tmp_path).revision == _ONE
    assert code_of(repository=str(below)).revision == _ONE


@pytest.mark.parametrize(
    "files",
    [
        {".git/config": ""},
        {".git/HEAD": ""},
        {".git/HEAD": "ref: refs/heads/unborn\n"},
        {".git/HEAD": "ref: refs/heads/.invalid\n"},
        {".git/HEAD": _ONE[:-1]},
        {".git/HEAD": _ONE.upper()},
        {".git/HEAD": "ref: ../../secret\n", "secret": _ONE},
        {".git/HEAD": "ref: refs/../../secret\n", "secret": _ONE},
        {".git/HEAD": "ref: /etc/hostname\n"},
        {".git/HEAD": "ref: refs/a\n", ".git/refs/a": "ref: refs/a\n"},
        {".git/HEAD": "ref: refs/a\n", ".git/packed-refs": "zz refs/a\n"},
        {".git/HEAD": "x" * 20_000},
        {".git": "something else"},
        {".git": "gitdir: nowhere"},
    ],
    ids=lambda files: next(iter(files.values()))[:24],
)
def test_a_repository_without_a_revision_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    """What is there and cannot be resolved is an error: left out it would look unchanged."""
    _write(tmp_path, files)

    with pytest.raises(WorldInvalid):
        code_of(repository=tmp_path)
