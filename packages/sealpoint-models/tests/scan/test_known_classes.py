# SPDX-License-Identifier: Apache-2.0
"""The classes whose objects are `not-plain`: that they are what the table says, and no others."""

import enum
import importlib
import io
import pickle as python_pickle

import pytest
import torch

from sealpoint.errors import UsageError
from sealpoint_models.scan import ScanVerdict, scan_bytes
from sealpoint_models.scan._known_classes import FUNCTIONS, LIBRARY_CLASSES
from sealpoint_models.scan._pickle_symbols import Global
from tests.scan.assembler import PAYLOAD, name, old_text, pickle, tarred, zipped

_ENUMERATED = {each for each, known in LIBRARY_CLASSES.items() if "enumeration" in known.reason}
_OBJECTS = {each for each, known in LIBRARY_CLASSES.items() if "attributes" in known.reason}
_RUN_WHEN_UNPICKLED = {"__new__", "__del__", "__setstate__", "__getattr__", "__getattribute__"}
_READ = {
    # Each fills in what older versions did not write, or says which attribute there is not.
    *("MultiheadAttention", "Softmin", "Softmax", "LogSoftmax", "AvgPool3d", "RNNBase", "_ConvNd"),
    *("TransformerEncoderLayer", "TransformerDecoderLayer", "Upsample", "Module", "PartialState"),
}
"""Classes of which those methods were read."""


def _found(each: Global) -> type:
    found: type = getattr(importlib.import_module(each.module), each.name)
    return found


@pytest.mark.parametrize("each", sorted(_OBJECTS), ids=str)
def test_an_object_runs_no_method_that_nobody_read(each: Global) -> None:
    """A new version of a library that adds one has to be looked at."""
    cls = _found(each)
    own = {
        base.__name__
        for base in cls.__mro__[:-1]
        if _RUN_WHEN_UNPICKLED & vars(base).keys() and base.__name__ != "Generic"
    }

    assert own <= _READ
    assert not any({"__reduce__", "__reduce_ex__"} & vars(base).keys() for base in cls.__mro__[:-1])


@pytest.mark.parametrize("each", sorted(_ENUMERATED), ids=str)
def test_an_enumeration_is_one(each: Global) -> None:
    """Its members are looked up by a text."""
    assert issubclass(_found(each), enum.Enum)


def test_every_other_name_is_one_of_its_library() -> None:
    """Functions of tensors, and what generators and masked arrays are written with."""
    for each in LIBRARY_CLASSES.keys() - _OBJECTS - _ENUMERATED:
        assert callable(_found(each)), each
    assert {each.module.partition(".")[0] for each in FUNCTIONS} == {"torch"}


def test_layers_of_torch_that_are_not_known_are_dangerous() -> None:
    """The list is of names: another class of the same package is not on it."""
    for module, attribute in (("torch.nn.modules.linear", "LazyLinear"), ("torch.nn", "Linear")):
        data = pickle(name(module, attribute) + b")\x81")

        assert scan_bytes(data, "m.pkl").verdict is ScanVerdict.DANGEROUS


# Classes of one's own.

_NET = name("model", "Net")


def test_a_class_of_ones_own_is_dangerous_until_it_is_named() -> None:
    """Nobody knows what it does; who wrote it may say that its objects only hold attributes."""
    data = pickle(_NET + b")\x81}" + old_text("lr") + b"K\x01sb")

    assert scan_bytes(data, "m.pkl").verdict is ScanVerdict.DANGEROUS
    report = scan_bytes(data, "m.pkl", own_classes=["model.Net"])
    assert report.verdict is ScanVerdict.NOT_PLAIN
    assert scan_bytes(data, "m.pkl", own_classes=["model.Other"]).is_refused(ScanVerdict.DANGEROUS)


@pytest.mark.parametrize(
    "body",
    [
        _NET + b")R",
        _NET + old_text("touch marker") + b"\x85R",
        _NET + old_text("a") + b"\x85\x81",
        _NET + b")\x81]b",
        _NET,
        b"]" + _NET + b"a",
    ],
    ids=["called", "called with a text", "arguments", "a list as state", "alone", "in a list"],
)
def test_a_class_of_ones_own_is_never_called(body: bytes) -> None:
    """Naming a class allows its objects and attributes, and not its `__init__`."""
    report = scan_bytes(pickle(body), "m.pkl", own_classes=["model.Net"])

    assert report.verdict is ScanVerdict.DANGEROUS


def test_a_whole_module_of_ones_own_class_is_not_plain() -> None:
    """What `torch.save(model)` writes of a class of the application."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)

    Net.__module__, Net.__qualname__ = __name__, "Net"
    globals()["Net"] = Net
    buffer = io.BytesIO()
    try:
        torch.save(Net(), buffer)
    finally:
        del globals()["Net"]

    assert scan_bytes(buffer.getvalue(), "m.pt").verdict is ScanVerdict.DANGEROUS
    report = scan_bytes(buffer.getvalue(), "m.pt", own_classes=[f"{__name__}.Net"])
    assert report.verdict is ScanVerdict.NOT_PLAIN


@pytest.mark.parametrize("named", ["Net", "", "model.", ".Net", "model.Net()", "a b.Net"])
def test_what_is_no_name_of_a_class_is_a_usage_error(named: str) -> None:
    """It would never be found in a file."""
    with pytest.raises(UsageError, match="expected a name such as"):
        scan_bytes(b"N.", own_classes=[named])


# No number of lesser findings hides a worse one.


def test_many_texts_in_an_archive_do_not_hide_a_payload() -> None:
    """A report has a bound, and what is only not read does not use it up."""
    texts = {f"{number}.txt": b"a" for number in range(500)}
    for packed in (zipped, tarred):
        report = scan_bytes(packed({**texts, "z.pkl": PAYLOAD}), "m.zip")

        assert report.verdict is ScanVerdict.DANGEROUS
        assert "os.system" in {finding.name for finding in report.findings}


def test_many_known_classes_do_not_hide_a_payload() -> None:
    """In one pickle, and in many."""
    known = b"".join(name(*each) + b"0" for each in LIBRARY_CLASSES)
    reports = [
        scan_bytes(pickle(known + PAYLOAD[2:-1]), "m.pkl"),
        scan_bytes(
            zipped({**{f"{n}.pkl": pickle(known + b"N") for n in range(9)}, "z.pkl": PAYLOAD}),
            "m.zip",
        ),
    ]

    for report in reports:
        assert report.verdict is ScanVerdict.DANGEROUS
        assert "os.system" in {finding.name for finding in report.findings}


def test_what_a_module_gives_is_what_torch_gives() -> None:
    """The control: the bytes that are not-plain here are those of a real module."""
    data = python_pickle.dumps(torch.nn.ReLU())

    assert [each.name for each in scan_bytes(data, "m.pkl").findings] == [
        "torch.nn.modules.activation.ReLU"
    ]
