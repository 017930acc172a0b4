# SPDX-License-Identifier: Apache-2.0
"""`sealpoint scan`: files and folders, what is printed, and how it ends."""

import errno
import hashlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sealpoint.cli import main
from sealpoint.errors import SealpointError, UsageError
from sealpoint_models.cli._scan import REFUSED_STATUS, _FolderWalk
from sealpoint_models.scan import RULES, ScanVerdict
from tests.repo.errors import error_classes
from tests.scan.assembler import PAYLOAD, pickle, zipped


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["scan", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with good and bad files."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "good.pkl").write_bytes(pickle(b"}"))
    (tmp_path / "sub" / "bad.zip").write_bytes(zipped({"m.pkl": PAYLOAD}))
    (tmp_path / "sub" / "not.pt").write_bytes(b"this is text")
    (tmp_path / "README.md").write_text("# A model\n", encoding="utf-8")
    return tmp_path


def test_safe_files_end_with_nothing(folder: Path) -> None:
    """The exit status is 0 if every file is safe, or is no model file."""
    result = _run(folder / "good.pkl", folder / "README.md")

    assert result.exit_code == 0
    assert "2 files: 1 safe, 1 not-read." in result.stdout


def test_a_folder_is_gone_through_and_what_is_wrong_is_said(folder: Path) -> None:
    """Every file below a folder is scanned, and a finding has its place and its rule."""
    result = _run(folder)

    assert result.exit_code == REFUSED_STATUS
    assert "m.pkl, byte 2: the pickle imports and calls 'os.system' [name-unknown]" in result.stdout
    assert "4 files: 1 safe, 1 not-read, 1 unreadable, 1 dangerous." in result.stdout


def test_the_exit_status_is_of_no_error() -> None:
    """No error of the tree ends with the status of a scan that found something."""
    assert REFUSED_STATUS not in {error.exit_status for error in error_classes()}
    assert REFUSED_STATUS not in {SealpointError.exit_status, UsageError.exit_status}


def test_json_has_all_findings(folder: Path) -> None:
    """The document has every file with its verdict, and what was skipped."""
    result = _run(folder, "--json", "--exclude", "*.md")
    document = json.loads(result.stdout)
    verdicts = {Path(each["path"]).name: each["verdict"] for each in document["files"]}

    assert document["verdict"] == "dangerous"
    assert verdicts == {"good.pkl": "safe", "bad.zip": "dangerous", "not.pt": "unreadable"}
    assert [Path(each["path"]).name for each in document["skipped"]] == ["README.md"]


# Levels, and files that are accepted.


@pytest.fixture
def levels(tmp_path: Path) -> Path:
    """A file of each level."""
    folder = tmp_path / "levels"
    folder.mkdir()
    (folder / "safe.pkl").write_bytes(pickle(b"}"))
    (folder / "README.md").write_text("# A model\n", encoding="utf-8")
    (folder / "layer.pkl").write_bytes(_LAYER)
    (folder / "noise.pt").write_bytes(bytes(range(256)))
    (folder / "bad.pkl").write_bytes(PAYLOAD)
    return folder


_LAYER = pickle(b"ctorch.nn.modules.activation\nReLU\n)\x81}b")
_BY_LEVEL = ["safe.pkl", "README.md", "layer.pkl", "noise.pt", "bad.pkl"]


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ([], 2),
        (["--fail-on", "not-plain"], 2),
        (["--fail-on", "unreadable"], 3),
        (["--fail-on", "not-read"], 1),
    ],
)
def test_a_file_is_refused_from_a_level_on(levels: Path, options: list[str], refused: int) -> None:
    """What is dangerous or unreadable always is; what is not plain by default, and may pass."""
    statuses = [_run(levels / each, *options).exit_code for each in _BY_LEVEL]

    assert statuses == [0] * refused + [REFUSED_STATUS] * (len(_BY_LEVEL) - refused)


@pytest.mark.parametrize("least", ["safe", "dangerous"])
def test_nothing_lets_an_unreadable_file_pass(levels: Path, least: str) -> None:
    """A payload stands before the fault that is meant to hide it."""
    assert _run(levels, "--fail-on", least).exit_code == UsageError.exit_status


def test_a_file_that_is_not_plain_is_accepted_by_its_digest(levels: Path, tmp_path: Path) -> None:
    """As sha256sum writes it; the name is for people, and another byte is another file."""
    listed = tmp_path / "accepted"
    digest = hashlib.sha256(_LAYER).hexdigest()
    listed.write_text(f"# reviewed\n\n{digest}  elsewhere/x.pkl\n", encoding="utf-8")
    result = _run(levels / "layer.pkl", "--accept", listed)

    assert result.exit_code == 0
    assert (
        "layer.pkl (pickle), accepted\n1 file: 1 not-plain, of which 1 accepted." in result.stdout
    )
    (levels / "layer.pkl").write_bytes(pickle(b"N0" + _LAYER[2:-1]))
    assert _run(levels / "layer.pkl", "--accept", listed).exit_code == REFUSED_STATUS


def test_an_accepted_file_is_marked_in_every_report(levels: Path, tmp_path: Path) -> None:
    """SARIF has it as suppressed, so that a code host can hide it."""
    listed = tmp_path / "accepted"
    listed.write_text(hashlib.sha256(_LAYER).hexdigest(), encoding="utf-8")
    file = levels / "layer.pkl"
    (found,) = json.loads(_run(file, "--accept", listed, "--json").stdout)["files"]
    (run,) = json.loads(_run(file, "--accept", listed, "--sarif", "-").stdout)["runs"]

    assert (found["verdict"], found["accepted"]) == ("not-plain", True)
    assert [each["suppressions"] for each in run["results"]] == [[{"kind": "external"}]]


def test_what_is_dangerous_or_unreadable_is_never_accepted(levels: Path, tmp_path: Path) -> None:
    """A digest does not make code data."""
    listed = tmp_path / "accepted"
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in levels.iterdir()]
    listed.write_text("\n".join(digests), encoding="utf-8")

    for each in ("noise.pt", "bad.pkl"):
        assert _run(levels / each, "--accept", listed).exit_code == REFUSED_STATUS
    both = _run(levels / "README.md", "--accept", listed, "--fail-on", "not-read")
    assert both.exit_code == 0


@pytest.mark.parametrize("line", ["abc", "A" * 64, "0" * 63, "0" * 65, f"{'0' * 64} ", "0x" * 32])
def test_a_line_that_is_no_digest_is_a_usage_error(levels: Path, tmp_path: Path, line: str) -> None:
    """It would accept nothing, and nobody would know."""
    listed = tmp_path / "accepted"
    listed.write_text(f"{'0' * 64}  a\n{line}\n", encoding="utf-8")
    result = _run(levels / "safe.pkl", "--accept", listed)

    assert result.exit_code == UsageError.exit_status
    assert "line 2 is not a SHA-256 digest" in result.stderr
    assert _run(levels / "safe.pkl", "--accept", tmp_path / "none").exit_code == (
        UsageError.exit_status
    )


def test_a_class_of_ones_own_can_be_named(levels: Path) -> None:
    """Then its objects can pass, and can be accepted; a call of it cannot."""
    (levels / "own.pkl").write_bytes(pickle(b"cmodel\nNet\n)\x81}b"))
    (levels / "called.pkl").write_bytes(pickle(b"cmodel\nNet\n)R"))
    options = ("--own-class", "model.Net", "--fail-on", "unreadable")

    assert _run(levels / "own.pkl", *options).exit_code == 0
    assert _run(levels / "own.pkl", *options[2:]).exit_code == REFUSED_STATUS
    assert _run(levels / "called.pkl", *options).exit_code == REFUSED_STATUS
    assert _run(levels, "--own-class", "Net").exit_code == UsageError.exit_status


@pytest.mark.parametrize("pattern", ["sub", "bad.*", "sub/*"])
def test_what_is_excluded_is_not_scanned_and_said(folder: Path, pattern: str) -> None:
    """A pattern matches a name or a path below the folder, and what it left out is named."""
    result = _run(folder, "--exclude", pattern, "--exclude", "not.pt")

    assert result.exit_code == 0
    assert "skipped" in result.stderr
    assert "bad.zip" not in result.stdout


def test_a_link_that_leads_out_is_no_pass(folder: Path, tmp_path_factory: Any) -> None:
    """A link to a file is scanned wherever that lies; one to a folder outside is unreadable."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "bad.pkl").write_bytes(PAYLOAD)
    (folder / "good").mkdir()
    (folder / "good" / "out.pkl").symlink_to(outside / "bad.pkl")
    (folder / "good" / "dir").symlink_to(outside)
    (folder / "good" / "near").mkdir()
    (folder / "good" / "again").symlink_to("near")
    result = _run(folder / "good", "--json")
    document = json.loads(result.stdout)
    verdicts = {Path(each["path"]).name: each["verdict"] for each in document["files"]}

    assert result.exit_code == REFUSED_STATUS
    assert verdicts == {"out.pkl": "dangerous", "dir": "unreadable"}
    assert [Path(each["path"]).name for each in document["skipped"]] == ["again"]


def test_a_link_to_a_folder_that_is_left_out_is_no_pass(tmp_path: Path) -> None:
    """What `.git` or a pattern keeps from a scan is not reached by another name unseen."""
    for hidden, link in ((".git/kept", "weights"), ("old", "model")):
        (tmp_path / hidden).mkdir(parents=True)
        (tmp_path / hidden / "bad.pkl").write_bytes(PAYLOAD)
        (tmp_path / link).symlink_to(hidden)
    result = _run(tmp_path, "--exclude", "old", "--json")
    verdicts = {
        Path(each["path"]).name: each["verdict"] for each in json.loads(result.stdout)["files"]
    }

    assert result.exit_code == REFUSED_STATUS
    assert verdicts == {"weights": "unreadable", "model": "unreadable"}


def test_a_linked_folder_passes_if_it_is_scanned_by_its_own_name(tmp_path: Path) -> None:
    """What the finding about a link to a folder asks for is all that is to be done."""
    for name in ("run", "shared"):
        (tmp_path / name).mkdir()
    (tmp_path / "shared" / "good.pkl").write_bytes(pickle(b"}"))
    (tmp_path / "run" / "base").symlink_to("../shared")

    assert _run(tmp_path / "run").exit_code == REFUSED_STATUS
    assert _run(tmp_path / "run", tmp_path / "shared").exit_code == 0


def test_links_in_a_circle_pipes_and_sockets_are_unreadable(tmp_path: Path) -> None:
    """What is no file is reported and not waited for, and the other files are scanned."""
    (tmp_path / "a.pt").symlink_to("b.pt")
    (tmp_path / "b.pt").symlink_to("a.pt")
    (tmp_path / "self").symlink_to(".")
    os.mkfifo(tmp_path / "pipe.pkl")
    (tmp_path / "bad.pkl").write_bytes(PAYLOAD)
    document = json.loads(_run(tmp_path, "--json").stdout)
    verdicts = {Path(each["path"]).name: each["verdict"] for each in document["files"]}

    assert verdicts == {
        "a.pt": "unreadable",
        "b.pt": "unreadable",
        "pipe.pkl": "unreadable",
        "bad.pkl": "dangerous",
    }


def test_a_folder_that_cannot_be_listed_is_unreadable(folder: Path) -> None:
    """It counts as a file that cannot be read does, and the other files are scanned."""
    walk = _FolderWalk(("sub",))
    files = list(walk.files(str(folder)))
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder / "locked"))
    walk._unlistable(error)  # what os.walk calls; root, who may run this, lists everything
    (report,) = walk.unlistable

    assert len(files) == 2
    assert (report.path, report.verdict) == (str(folder / "locked"), ScanVerdict.UNREADABLE)
    assert report.findings[0].message == "expected a folder to list: Permission denied"


def test_folders_in_folders_do_not_end_a_scan(tmp_path: Path) -> None:
    """Whoever nests them deeper than Python calls itself hides nothing, here or elsewhere."""
    deepest = tmp_path.joinpath("a", *["d"] * 200)
    deepest.mkdir(parents=True)
    for place in (deepest, tmp_path):
        (place / "bad.pkl").write_bytes(PAYLOAD)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        files = list(_FolderWalk(()).files(str(tmp_path)))
    finally:
        sys.setrecursionlimit(before)

    assert files == [str(place / "bad.pkl") for place in (tmp_path, deepest)]


def test_names_of_files_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """Control characters, marks of direction and bytes that are no text are escaped."""
    for name in (b"\x1b[31mred.pkl", "\u202egnp.pkl".encode(), b"\xff.pkl", b"two\nlines.pkl"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(PAYLOAD)
    output = _run(tmp_path).stdout

    assert output.count("os.system") == 4
    assert not any(each in output for each in ("\x1b", "\u202e", "\udcff", "two\n"))


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    """A path that nobody can look at ends the command before anything is scanned."""
    result = _run(tmp_path / "none")

    assert result.exit_code == UsageError.exit_status


def test_sarif_keeps_the_rules_of_its_format(folder: Path, tmp_path: Path) -> None:
    """The log has its version, all rules, and for each finding a rule, a level and a place."""
    place = tmp_path / "log.sarif"
    result = _run(folder, "--sarif", place)
    log = json.loads(place.read_text(encoding="utf-8"))
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]

    assert result.exit_code == REFUSED_STATUS
    assert log["version"] == "2.1.0"
    assert rules == list(RULES)
    assert run["results"]
    for each in run["results"]:
        assert rules[each["ruleIndex"]] == each["ruleId"]
        assert each["level"] in {"error", "note"}
        assert each["message"]["text"]
        (location,) = each["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")


def test_paths_in_sarif_are_relative_to_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code host finds the file by its path in the repository, however it was given."""
    monkeypatch.chdir(folder)
    for given in (".", "sub", folder / "sub"):
        (run,) = json.loads(_run(given, "--sarif", "-").stdout)["runs"]
        uris = {
            each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for each in run["results"]
        }

        assert uris == {"sub/bad.zip", "sub/not.pt"}


def test_sarif_is_printed_alone(folder: Path) -> None:
    """With - the log is all that is printed, and asking for JSON as well is refused."""
    result = _run(folder, "--sarif", "-")

    assert json.loads(result.stdout)["version"] == "2.1.0"
    assert _run(folder, "--sarif", "-", "--json").exit_code == UsageError.exit_status


def test_a_log_that_cannot_be_written_takes_no_report_along(folder: Path) -> None:
    """A long scan is told in any case, and why there is no log as well."""
    result = _run(folder, "--sarif", folder / "none" / "log.sarif")

    assert result.exit_code == UsageError.exit_status
    assert "4 files: 1 safe, 1 not-read, 1 unreadable, 1 dangerous." in result.stdout
    assert "found: No such file or directory" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("form", [[], ["--json"], ["--sarif", "-"]])
def test_a_report_that_has_no_room_is_no_pass(folder: Path, form: list[str]) -> None:
    """A full disk behind the output is an error of its own, and no status of a scan."""
    command = [sys.executable, "-m", "sealpoint", "scan", str(folder / "good.pkl"), *form]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == UsageError.exit_status
    assert "standard output: expected a place that can be written" in ended.stderr
    assert "Traceback" not in ended.stderr
