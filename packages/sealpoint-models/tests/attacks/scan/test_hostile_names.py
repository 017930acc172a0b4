# SPDX-License-Identifier: Apache-2.0
"""Names that steer a terminal, or break what another program reads, in files and around them."""

import json
import os
import re
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint_models.scan import ScanReport, sarif_document
from sealpoint_models.scan._report import ScanFinding
from tests.scan.assembler import PAYLOAD, zipped

_NAMES = [
    b"esc\x1b[31mX\x1b]0;title\x07.pt",
    b"line\nbreak\r.pt",
    b"not-utf-8\xff\xed\xa0\x80.pt",
    "turned\u202egnp.\u2066pt".encode(),
    "separated\u2028by\u2029\x85lines.pt".encode(),
    b"c1\xc2\x9b31m.pt",
    b"%2e%2e%2fquoted.pt",
    b"scheme:a?b#c.pt",
    b"[bold]markup.pt",
]
_RAW = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_ISOLATES = "\u2068\u2069"
_LONE = re.compile(r"(?<!\\)(?:\\\\)*\\ud(?:[89ab]..(?!\\ud[c-f])|[c-f]..)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of files with such names, outside and inside."""
    texts = [name.decode(errors="surrogateescape") for name in _NAMES]
    for number, name in enumerate(texts):
        (tmp_path / name).write_bytes(PAYLOAD if number % 2 else b"junk")
        member = name.encode(errors="surrogateescape").decode(errors="replace")
        (tmp_path / f"{number}.zip").write_bytes(zipped({member: PAYLOAD}))
        raw = f"{name}\ud83d".encode(errors="surrogatepass")
        named = b"X" + len(raw).to_bytes(4, "little") + raw
        (tmp_path / f"{number}.pkl").write_bytes(b"\x80\x04" + named * 2 + b"\x93.")
    return tmp_path


def _printed(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    return result.stdout, result.stderr


def _raw(text: str) -> set[str]:
    return {
        char for char in text if unicodedata.category(char) in _RAW and char not in _ISOLATES
    } - {"\n"}


def test_no_name_reaches_a_terminal_raw(folder: Path) -> None:
    """What is printed has no control, format or half character of any name."""
    for file in (folder, *folder.iterdir()):
        for verb in (("scan",), ("model", "inspect"), ("model", "convert")):
            target = [folder / "new"] if "convert" in verb else []
            assert not _raw("".join(_printed(*verb, file, *target)))


def test_no_argument_reaches_a_terminal_raw() -> None:
    """Names that a shell puts in place of a star are arguments, and stand in errors of usage."""
    for verb in (("model", "inspect", "a"), ("scan", "--no"), ("model",), ()):
        for name in _NAMES:
            assert not _raw("".join(_printed(*verb, os.fsdecode(name))))


def test_documents_have_whole_characters_and_lead_to_the_files(folder: Path) -> None:
    """JSON and SARIF are read by strict readers, and every address is of a file of the folder."""
    document = _printed("scan", folder, "--json")[0]
    log = _printed("scan", folder, "--sarif", "-")[0]
    results = json.loads(log)["runs"][0]["results"]
    addresses = {
        place["physicalLocation"]["artifactLocation"]["uri"]
        for result in results
        for place in result["locations"]
    }
    expected = {file.as_uri() for file in folder.iterdir()}

    assert not _LONE.search(document + log)
    assert (document + log).isascii()
    assert log.endswith("}\n")
    assert addresses <= expected
    for file in folder.iterdir():
        assert not _LONE.search("".join(_printed("model", "inspect", file, "--json")))


def test_a_planted_link_has_no_file_replaced_by_a_log(folder: Path) -> None:
    """A log is not written through a link, to a file or to nothing; other places are as before."""
    victim, link = folder / "victim", folder / "log.sarif"
    victim.write_text("kept")
    for named in (victim, folder / "nothing"):
        link.symlink_to(named)

        assert "found a link to one" in _printed("scan", folder, "--sarif", link)[1]
        link.unlink()
    assert victim.read_text() == "kept"
    assert not (folder / "nothing").exists()
    _printed("scan", folder, "--sarif", link)
    assert json.loads(link.read_text())["version"] == "2.1.0"
    assert not _printed("scan", folder, "--sarif", "/dev/null")[1]


def test_an_address_names_no_host() -> None:
    """Two slashes at the beginning of a path stay a path of this machine."""
    finding = ScanFinding(rule="malformed", message="m")
    report = ScanReport(path="//host/m.pt", format="unknown", size=0, findings=(finding,))
    (result,) = sarif_document([report], version="1")["runs"][0]["results"]

    address = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert address == "file:///host/m.pt"
