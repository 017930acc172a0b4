# SPDX-License-Identifier: Apache-2.0
"""Documents, templates and source code beside a model: what names code is found."""

import json
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint_models.scan import ScanVerdict, scan_bytes
from tests.scan.assembler import PAYLOAD
from tests.scan.malicious import sinks

_FOLDER = {
    "config.json": (b'{"auto_map": {"AutoModel": "modeling_evil.Model"}}', "dangerous"),
    "modeling_evil.py": (b"import os\nos.system('touch marker')\n", "dangerous"),
    "state.yaml": (b"!!python/object/apply:os.system ['touch marker']\n", "dangerous"),
    "hydra.yaml": (b"model:\n  _target_: os.system\n", "dangerous"),
    "chat_template.jinja": (b"{{ x.__class__.__base__ }}", "dangerous"),
    "tokenizer_config.json": (b'{"chat_template": "{{ x.__class__ }}"}', "dangerous"),
    "train.arrow": (b"ARROW1\x00\x00" + PAYLOAD + b"ARROW1", "not-read"),
    "train.parquet": (b"PAR1" + PAYLOAD + b"PAR1", "not-read"),
}
"""The folder of A05, each file of which was `safe`."""


def test_no_file_of_the_folder_is_called_safe(tmp_path: Path) -> None:
    """Code is dangerous, and what is not read is counted as that."""
    for name, (data, _) in _FOLDER.items():
        (tmp_path / name).write_bytes(data)
    result = CliRunner().invoke(main, ["scan", str(tmp_path), "--json"])
    document = json.loads(result.stdout)

    assert result.exit_code == 3
    assert document["counts"] == {"dangerous": 6, "not-read": 2}
    assert {Path(each["path"]).name: each["verdict"] for each in document["files"]} == {
        name: verdict for name, (_, verdict) in _FOLDER.items()
    }


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("config.json", b'{"hidden_size": 8, "architectures": ["Llama"], "auto_map": null}'),
        ("tokenizer.json", b'{"vocab": {"auto_map": 5, "_target_": 7, "class_path": 9}}'),
        ("notes.json", b"// not JSON\n{}"),
        ("params.yaml", b"lr: 0.1\nshape: !!python/tuple [1, 2]\nnote: wow! really !important\n"),
        ("params.yml", b"target: a\nmy_target_: 1\npath: src/py/object/a\n"),
        ("README.md", b"Use `_target_:` and `!!python/object:` with care.\n"),
        ("vocab.txt", b"import\nos\n"),
        ("run.sh", b"#!/bin/sh\nls\n"),
        ("LICENSE", b"Do what you like.\n"),
        ("video.mp4", b"\x00\x00\x00\x18ftypmp42" + bytes(100)),
    ],
)
def test_documents_that_name_no_code_are_not_read(name: str, data: bytes) -> None:
    """They are not called safe, and nothing is held against them."""
    report = scan_bytes(data, name)

    assert report.verdict is ScanVerdict.NOT_READ
    assert not report.is_refused()
    assert report.is_refused(ScanVerdict.NOT_READ)


@pytest.mark.parametrize("name", ["weights", "model.engine", "config.json", "params.yaml", "a.pt"])
def test_bytes_that_nobody_knows_are_unreadable_under_the_name_of_a_model(name: str) -> None:
    """Nor is there a document in them; a name without an ending may be that of anything."""
    assert scan_bytes(bytes(range(256)), name).verdict is ScanVerdict.UNREADABLE


def test_every_tag_of_python_that_runs_something_is_found() -> None:
    """The tags that PyYAML has constructors for are plain values, or they are found."""
    prefix = "tag:yaml.org,2002:python/"
    loaders = (yaml.FullLoader, yaml.UnsafeLoader)
    known = {tag for loader in loaders for tag in loader.yaml_constructors if tag}
    prefixes = {tag for loader in loaders for tag in loader.yaml_multi_constructors if tag}
    tags = {tag.removeprefix(prefix) for tag in known if tag.startswith(prefix)}
    plain = {
        tag
        for tag in tags
        if scan_bytes(f"a: !!python/{tag} ''\n".encode(), "a.yaml").verdict is ScanVerdict.NOT_READ
    }

    assert plain == tags
    assert len(prefixes) >= 4
    for tag in prefixes:
        for spelled in (f"!!python/{tag.removeprefix(prefix)}os.x", f"!<{tag}os.x>"):
            report = scan_bytes(f"a: {spelled} ''\n".encode(), "a.yaml")

            assert [each.rule for each in report.findings] == ["names-code"]


def test_spellings_of_a_key_are_one_key_to_yaml() -> None:
    """The control: what the samples spell in another way is the key of Hydra to its parser."""
    spelled = [
        each.data
        for each in sinks()
        if "document: Hydra, " in each.label and each.file[-3:] != "son"
    ]

    assert len(spelled) >= 4
    for data in spelled:
        assert "_target_" in yaml.safe_load(data)
