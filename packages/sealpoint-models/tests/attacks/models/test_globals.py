# SPDX-License-Identifier: Apache-2.0
"""Names outside of the closed table: those that run code, and those that torch allows."""

import io
import struct
from pathlib import Path

import pytest
import torch

from sealpoint.errors import GlobalNotAllowed, ModelError, ModelMalformed
from tests.pt_files import (
    EMPTY,
    archive,
    call,
    dictionary,
    integer,
    listed,
    named,
    ours,
    pickled,
    saved,
    stock,
    storage,
    tensor,
    text,
    tupled,
)

# Gadgets that lists of forbidden names missed at one time or another.
_GADGETS = [
    ("os", "system"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("__builtin__", "exec"),
    ("subprocess", "Popen"),
    ("pkgutil", "resolve_name"),
    ("operator", "attrgetter"),
    ("importlib", "import_module"),
    ("torch.storage", "_load_from_bytes"),
    ("torch", "load"),
    ("torch.hub", "load"),
    ("torch.utils.collect_env", "run"),
    ("pathlib", "os.system"),
    ("numpy", "load"),
    ("copyreg", "add_extension"),
    ("functools", "partial"),
    ("collections", "OrderedDict.fromkeys"),
    ("torch", "FloatStorage.from_file"),
]


@pytest.mark.parametrize(("module", "name"), _GADGETS, ids=lambda part: part)
def test_gadget_is_refused_by_its_name(tmp_path: Path, module: str, name: str) -> None:
    """Called, made without its constructor, or only named: it is refused, and nothing happens."""
    marker = tmp_path / "ran"
    argument = text(f"touch {marker}")
    for program in (
        call(module, name, argument),
        named(module, name) + tupled(argument) + b"\x81",
        named(module, name),
        listed(integer(1), call(module, name, argument)),
        dictionary((text("a"), call(module, name, argument))),
        EMPTY + dictionary((text("_metadata"), call(module, name, argument))) + b"b",
    ):
        with pytest.raises(GlobalNotAllowed, match=f"found '{module}.{name}'"):
            ours(pickled(program))

    assert not marker.exists()


def test_module_that_was_saved_whole_is_refused_by_its_class() -> None:
    """The most common file that holds code: the message says what to leave out."""
    with pytest.raises(GlobalNotAllowed, match=r"found 'torch\.nn\.modules\.linear\.Linear'"):
        ours(saved(torch.nn.Linear(2, 2)))


def test_name_cannot_break_out_of_the_message() -> None:
    """What a file calls itself is quoted, escaped and cut."""
    name = "\x1b[31m" + "x" * 400

    with pytest.raises(GlobalNotAllowed) as caught:
        ours(pickled(named("a", name)))
    assert "\x1b" not in str(caught.value)
    assert len(caught.value.message) < 250


_FOUR = {"0": struct.pack("<4f", 1, 2, 3, 4)}
_TENSOR = tensor(storage("FloatStorage", "0", 4), [4], [1])

_ALLOWED_BY_TORCH: dict[str, tuple[bytes, dict[str, bytes], type[ModelError]]] = {
    "attributes on a tensor": (
        call(
            "torch._tensor",
            "_rebuild_from_type_v2",
            named("torch._utils", "_rebuild_tensor_v2"),
            named("torch", "Tensor"),
            tupled(
                storage("FloatStorage", "0", 4),
                integer(0),
                tupled(integer(4)),
                tupled(integer(1)),
                b"\x89",
                EMPTY,
            ),
            dictionary((text("numel"), text("not a method"))),
        ),
        _FOUR,
        ModelMalformed,
    ),
    "attributes on an OrderedDict": (
        EMPTY + dictionary((text("items"), text("not a method"))) + b"b",
        {},
        ModelMalformed,
    ),
    "hooks on a tensor": (
        tensor(
            storage("FloatStorage", "0", 4),
            [4],
            [1],
            hooks=EMPTY + dictionary((integer(1), text("x")))[1:],
        ),
        _FOUR,
        ModelMalformed,
    ),
    "memory as it was left": (call("torch", "FloatTensor", integer(1000)), {}, GlobalNotAllowed),
    "a tensor on meta": (
        tensor(storage("FloatStorage", "0", 4, "meta"), [4], [1]),
        _FOUR,
        ModelMalformed,
    ),
    "a class as a value": (named("collections", "OrderedDict"), {}, GlobalNotAllowed),
    "a parameter without its constructor": (
        named("torch.nn.parameter", "Parameter") + tupled(_TENSOR) + b"\x81",
        _FOUR,
        GlobalNotAllowed,
    ),
}


@pytest.mark.parametrize(
    ("program", "storages", "error"), _ALLOWED_BY_TORCH.values(), ids=_ALLOWED_BY_TORCH
)
def test_what_torch_allows_beyond_the_table_is_refused(
    program: bytes, storages: dict[str, bytes], error: type[ModelError]
) -> None:
    """Torch builds each of these; none of them is tensors and plain data as torch saves them."""
    data = pickled(program, storages)
    loaded = torch.load(io.BytesIO(data), weights_only=True)

    assert loaded is not None
    with pytest.raises(error):
        ours(data)


def test_honest_twins_load() -> None:
    """The control: a tensor, a parameter and a state dict in their own form load with both."""
    parameter = call("torch._utils", "_rebuild_parameter", _TENSOR, b"\x88", EMPTY)
    state = EMPTY + dictionary((text("w"), _TENSOR))[1:]
    state += dictionary((text("_metadata"), EMPTY)) + b"b"
    for program in (_TENSOR, parameter):
        data = pickled(program, _FOUR)
        assert torch.equal(ours(data), stock(data))
        assert type(ours(data)) is type(stock(data))
    data = pickled(state, _FOUR)

    assert ours(data)["w"].tolist() == stock(data)["w"].tolist()
    assert ours(data)._metadata == {}


def test_class_named_in_plain_text_stays_text() -> None:
    """A text that an application might import by itself is data, and is returned as it is."""
    hyper = {"_instantiator": "os.system", "_target_": "builtins.eval"}
    program = dictionary(*((text(key), text(value)) for key, value in hyper.items()))

    assert ours(pickled(program)) == hyper


def test_second_pickle_in_another_record_is_refused() -> None:
    """Only the records that torch writes may be there."""
    data = archive({"data.pkl": b"\x80\x02N.", "evil.pkl": b"\x80\x02N.", "version": b"3\n"})

    assert stock(data) is None
    with pytest.raises(ModelMalformed, match=r"found 'archive/evil\.pkl'"):
        ours(data)
