# SPDX-License-Identifier: Apache-2.0
"""Wheels of all parts are built, and each works with the core in an environment of its own."""

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.repo._markdown import blocks
from tests.repo._tree import ROOT

_PARTS = sorted(path.name for path in (ROOT / "packages").iterdir())
_NEEDS = {"sealpoint-agent-framework": ("sealpoint-models",)}
_VERBS = {
    "openclaw": "sealpoint-openclaw",
    "scan": "sealpoint-models",
    "serve": "sealpoint-console",
    "provision postgres": "sealpoint-postgres",
    "import agent-framework": "sealpoint-agent-framework",
}


# What each verb says in a process that has not run another; starting Python takes most of the time.
_HELP = """
import json, os, runpy, sys, tempfile

program, *verbs = sys.argv[1:]
import sealpoint.cli
for verb in verbs:
    with tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(errors.fileno(), 2)
            sys.argv = [program, *verb.split(), "--help"]
            runpy.run_path(program, run_name="__main__")
            sys.exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        print(json.dumps([status, errors.read()]))
"""


def _run(*words: str | Path) -> None:
    subprocess.run([*map(str, words)], check=True, capture_output=True)


def _build(folder: Path) -> dict[str, Path]:
    """A wheel of each part, by the name of the distribution."""
    sources = [ROOT / "packages" / name for name in _PARTS]
    options = ("--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--no-index")
    _run(sys.executable, "-m", "pip", "wheel", *options, "-w", folder, *sources)
    return {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}


def _third_party(folder: Path) -> Path:
    """What others have made, as it is installed here, and nothing of ours."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "sealpoint" not in path.name and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


def _environment(folder: Path, wheels: list[Path], third_party: Path) -> Path:
    """The interpreter of a new environment that has these wheels."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    options = ("--no-config", "--offline", "--no-cache", "--no-deps", "--python", python)
    _run(Path(sys.executable).with_name("uv"), "pip", "install", *options, *wheels)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "third-party.pth").write_text(f"{third_party}\n", encoding="utf-8")
    return python


def _faults(part: str, python: Path, place: Path) -> list[str]:
    """What does not work in an environment with a part: its README, the command, missing verbs."""
    found = []
    place.mkdir()
    readme = (ROOT / "packages" / part / "README.md").read_text(encoding="utf-8")
    for block in blocks(readme):
        if block.language != "python":
            continue
        ran = subprocess.run(
            [python, "-I", "-c", block.text], cwd=place, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            found.append(f"{part}: line {block.line} of its README: {ran.stderr[-300:]}")
    installed = {part, *_NEEDS.get(part, ())}
    helped = subprocess.run(
        [python, "-I", "-c", _HELP, python.parent / "sealpoint", *_VERBS],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    for (verb, owner), line in zip(_VERBS.items(), helped.stdout.splitlines(), strict=True):
        status, errors = json.loads(line)
        works = status == 0
        named = f"pip install {owner}" in errors
        if works != (owner in installed) or (not works and not named):
            found.append(f"{part}: {verb}: {status} {errors[-300:]}")
    return found


def test_each_wheel_works_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """With what it needs, its README runs; verbs of other parts name what to install."""
    wheels, third_party = _build(tmp_path / "wheels"), _third_party(tmp_path / "third")
    faults = []
    for part in _PARTS:
        needed = {"sealpoint", part, *_NEEDS.get(part, ())}
        python = _environment(tmp_path / part, [wheels[name] for name in needed], third_party)
        faults += _faults(part, python, tmp_path / f"{part}-work")

    assert sorted(wheels) == _PARTS
    assert not faults
