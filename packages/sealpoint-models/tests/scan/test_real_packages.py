# SPDX-License-Identifier: Apache-2.0
"""Files that the packages of each format write themselves are called what they are."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sealpoint_models.scan import ScanVerdict, scan_bytes, scan_path
from sealpoint_models.scan._keras import _CODE, _is_own_class
from tests.repo._tree import ROOT
from tests.scan.assembler import PAYLOAD, zipped

# Arrays.


def test_arrays_whose_names_differ_in_the_size_of_letters_are_safe(tmp_path: Path) -> None:
    """Weights may be called W and w: numpy tells them apart."""
    np.savez(tmp_path / "m.npz", W=np.ones(3), w=np.ones(2))

    assert scan_path(tmp_path / "m.npz").findings == ()


def test_an_array_that_python_2_wrote_is_safe() -> None:
    """Its header has an L after each number, and numpy reads it."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 1L), }\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)
    with pytest.warns(UserWarning, match="Python 2"):
        read = np.load(io.BytesIO(data))

    assert read.shape == (2, 1)
    assert scan_bytes(data, "m.npy").findings == ()


# GGUF.

_TEMPLATE = "{% for m in messages %}{{ m['role'] + '__' + m.content | trim }}{% endfor %}"


def _gguf(path: Path, *, template: Any = None, alignment: int | None = None, **options: Any) -> Any:
    writer = gguf.GGUFWriter(path, "llama", **options)
    writer.add_block_count(2)
    writer.add_token_list(["a", "ü"])
    writer.add_token_scores([0.0, 1.0])
    writer.add_bool("flag", val=True)
    writer.add_string("empty", "")
    if template is not None:
        writer.add_chat_template(template)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    return writer


def _written(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", gguf.GGMLQuantizationType)
def test_tensors_of_every_type_of_gguf_are_safe(
    kind: gguf.GGMLQuantizationType, tmp_path: Path
) -> None:
    """Every type of tensors that the package writes has the size that we compute."""
    _, size = gguf.GGML_QUANT_SIZES[kind]
    writer = _gguf(tmp_path / "m.gguf", alignment=64)
    for name in ("a", "b"):
        writer.add_tensor(name, np.zeros((3, 2 * size), np.uint8), raw_dtype=kind)
    _written(writer)

    assert scan_path(tmp_path / "m.gguf").findings == ()


def test_templates_of_gguf_are_notes(tmp_path: Path) -> None:
    """A file is safe with one template, with several, and with none; each is mentioned."""
    several = [{"name": "default", "template": _TEMPLATE}, {"name": "tools", "template": "{{ x }}"}]
    for number, template in enumerate((None, _TEMPLATE, several)):
        _written(_gguf(tmp_path / "m.gguf", template=template))
        report = scan_path(tmp_path / "m.gguf")

        assert report.findings == ()
        assert [note.rule for note in report.notes] == ["template"] * number


@pytest.mark.parametrize(
    "template",
    [
        "{{ ().__class__.__base__.__subclasses__() }}",
        "{{ cycler|attr('x')|attr(y) }}",
        "{{ x['\\x5f\\x5fglobals\\x5f\\x5f'] }}",
        "{{ x['_' ~ '_globals_' ~ \"_\"] }}",
    ],
)
def test_a_template_that_reaches_for_attributes_of_python_is_unsafe(
    template: str, tmp_path: Path
) -> None:
    """What only an attack needs is a finding, in each spelling that is known."""
    _written(_gguf(tmp_path / "m.gguf", template=template))
    (finding,) = scan_path(tmp_path / "m.gguf").findings

    assert finding.rule == "names-code"


@pytest.mark.parametrize("lists", [[[1, 2], [3]], [["a"], ["b", "c"]], [[[1.5]], [[2.5]]]])
def test_arrays_in_arrays_of_gguf_are_safe(lists: Any, tmp_path: Path) -> None:
    """Metadata that the package nests is gone over as far as it reaches."""
    writer = _gguf(tmp_path / "m.gguf", template=_TEMPLATE)
    writer.add_array("nested", lists)
    _written(writer)
    report = scan_path(tmp_path / "m.gguf")

    assert report.findings == ()
    assert [note.rule for note in report.notes] == ["template"]


def test_gguf_of_the_other_byte_order_is_said_to_be_so(tmp_path: Path) -> None:
    """A file for machines whose numbers begin with their highest byte is not read."""
    _written(_gguf(tmp_path / "m.gguf", endianess=gguf.GGUFEndian.BIG))
    (finding,) = scan_path(tmp_path / "m.gguf").findings

    assert "found the other order" in finding.message


# ONNX.

_WEIGHTS = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")


def _model(nodes: list[Any], initializers: Any = (), **options: Any) -> Any:
    def value(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4])

    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], list(initializers))
    domains = {"", *(node.domain for node in nodes)}
    opsets = [helper.make_opsetid(domain, 18 if not domain else 1) for domain in sorted(domains)]
    return helper.make_model(graph, opset_imports=opsets, **options)


def _relu(domain: str = "", operator: str = "Relu") -> Any:
    return helper.make_node(operator, ["x"], ["y"], domain=domain)


def _onnx_models() -> dict[str, Any]:
    multiplied = [helper.make_node("MatMul", ["x", "w"], ["z"]), _relu()]
    typed = _model(multiplied, [_WEIGHTS])
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["q"])],
        "branch",
        [],
        [helper.make_tensor_value_info("q", TensorProto.FLOAT, [None, 4])],
    )
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(2, np.float32), "v"),
        numpy_helper.from_array(np.array([0, 3]), "i"),
        [4],
    )
    constant = helper.make_node("Constant", [], ["k"], sparse_value=sparse)
    body = [helper.make_node("Relu", ["a"], ["b"])]
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    kinds = (TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT4, TensorProto.BOOL)
    tensors = [helper.make_tensor(str(kind), kind, [2], [1, 0]) for kind in kinds]
    texts = numpy_helper.from_array(np.array(["a", "b"], object), "texts")
    models = {
        "weights": typed,
        "with shapes": onnx.shape_inference.infer_shapes(typed),
        "a branch": _model([choice], [numpy_helper.from_array(np.ones((), bool), "c")]),
        "a sparse constant": _model([constant, helper.make_node("Add", ["x", "k"], ["y"])]),
        "a function of its own": _model([_relu("own", "F")], functions=[function]),
        "operators of ONNX Runtime": _model([_relu("com.microsoft", "Gelu")]),
        "tensors of many types": _model([_relu()], [*tensors, texts]),
        "metadata": _model([_relu()], producer_name="a", doc_string="b"),
    }
    helper.set_model_props(models["metadata"], {"author": "somebody"})
    return models


@pytest.mark.parametrize("label", _onnx_models())
def test_models_of_onnx_are_safe(label: str) -> None:
    """What the package writes is safe, and nothing has to be said about it."""
    report = scan_bytes(_onnx_models()[label].SerializeToString(), "m.onnx")

    assert (report.findings, report.notes) == ((), ())


def test_operators_that_a_runtime_has_to_bring_are_mentioned() -> None:
    """An operator of another domain that is no function of the model is a note."""
    report = scan_bytes(_model([_relu("some.where", "Magic")]).SerializeToString(), "m.onnx")

    assert report.verdict is ScanVerdict.SAFE
    assert [note.rule for note in report.notes] == ["custom-operators"]


def test_elements_in_a_file_beside_are_mentioned(tmp_path: Path) -> None:
    """A model that the package wrote as two files is safe, and says where its elements lie."""
    onnx.save_model(
        _model([_relu()], [_WEIGHTS]),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="m.data",
        size_threshold=0,
    )
    report = scan_path(tmp_path / "m.onnx")

    assert report.verdict is ScanVerdict.SAFE
    assert [(note.rule, "'m.data'" in note.message) for note in report.notes] == [
        ("external-data", True)
    ]


def test_lists_of_a_forest_are_gone_over() -> None:
    """A list of more fields than a file of its size may have is safe, and what follows is seen."""
    count = 100_000
    forest = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        nodes_featureids=[number % 300 for number in range(count)],
        nodes_values=[number / 7 for number in range(count)],
        nodes_modes=["BRANCH_LEQ" if number % 5 else "m" * 200 for number in range(count)],
    )
    elements = TensorProto(name="w", data_type=1, data_location="EXTERNAL")
    elements.external_data.add(key="location", value="../w")
    data = _model([forest]).SerializeToString()
    outside = _model([forest], [elements]).SerializeToString()

    assert scan_bytes(data, "m.onnx").findings == ()
    assert [each.rule for each in scan_bytes(outside, "m.onnx").findings] == ["path-escapes"]


def test_an_address_of_memory_is_no_file_beside_a_model() -> None:
    """What ONNX Runtime takes for a place of its own memory is a path that leads out."""
    elements = TensorProto(name="w", data_type=1, data_location="EXTERNAL")
    elements.external_data.add(key="location", value="*/_ORT_MEM_ADDR_/*")
    report = scan_bytes(_model([_relu()], [elements]).SerializeToString(), "m.onnx")

    assert [finding.rule for finding in report.findings] == ["path-escapes"]


def test_a_graph_that_was_compiled_for_a_device_holds_code() -> None:
    """What ONNX Runtime compiled and put into one node is not called safe."""
    compiled = _relu("com.microsoft", "EPContext")
    report = scan_bytes(_model([compiled]).SerializeToString(), "m.onnx")

    assert [finding.rule for finding in report.findings] == ["holds-code"]


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


_KEY, _OUTSIDE = _field(1, b"location"), _field(2, b"/etc/passwd")


@pytest.mark.parametrize(
    "entry",
    [
        _KEY + _OUTSIDE,
        _field(1, b"") + _OUTSIDE + _KEY,
        _field(1, b"note") + _OUTSIDE + _KEY,
        _OUTSIDE + _KEY,
        _KEY + _field(2, b"m.data") + _OUTSIDE,
        b"\x08\x01" + _KEY + _OUTSIDE,
    ],
    ids=["plain", "no key first", "two keys", "the value first", "two values", "a number first"],
)
def test_a_path_that_leads_out_is_found_however_it_is_spelled(entry: bytes) -> None:
    """The package reads each spelling as the same path; none of them is safe."""
    tensor = b"\x08\x04\x10\x01" + _field(8, b"w") + _field(13, entry) + b"\x70\x01"
    node = _field(1, b"x") + _field(2, b"y") + _field(4, b"Relu")
    graph = _field(1, node) + _field(2, b"g") + _field(5, tensor)
    data = b"\x08\x0a" + _field(7, graph) + _field(8, b"\x0a\x00\x10\x12")
    (read,) = onnx.ModelProto.FromString(data).graph.initializer[0].external_data

    assert (read.key, read.value) == ("location", "/etc/passwd")
    assert scan_bytes(data, "m.onnx").verdict is not ScanVerdict.SAFE


# Keras.


@pytest.fixture(scope="module")
def keras_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Keras wrote, in a process of its own."""
    folder: Path = tmp_path_factory.mktemp("keras")
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.scan.keras_files", str(folder)],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    return folder


def test_code_in_models_of_keras_is_found(keras_folder: Path) -> None:
    """Of models of Keras' own classes only the weights are not read; all else is refused."""
    reports = {
        path.name: scan_path(path)
        for path in keras_folder.iterdir()
        if path.suffix in {".keras", ".h5"}
    }
    honest = {name: each for name, each in reports.items() if not name.startswith("code-")}

    assert all(each.is_refused() for name, each in reports.items() if name not in honest)
    for report in honest.values():
        assert {finding.rule for finding in report.findings} <= {"weights-not-read"}
    assert len(reports) == 10
    assert len(honest) >= 3


_WITHOUT_A_MODEL = {
    *("Constraint", "Initializer", "LearningRateSchedule", "Loss", "Metric", "MultiOptimizer"),
    *("Optimizer", "OptimizerMap", "Quantizer", "Regularizer"),
}
"""Classes to derive from, and those that hold several optimizers, which no configuration names."""
_TAKE_FUNCTIONS = {
    *("AssociativeScan", "Cond", "ForiLoop", "JVP", "Map", "Scan", "Switch", "VectorizedMap"),
    "WhileLoop",
}


def test_the_table_has_every_class_of_keras(keras_folder: Path) -> None:
    """Each class that a configuration can name is in the table, or is known to be code."""
    names = json.loads((keras_folder / "names.json").read_text(encoding="utf-8"))
    missing = {name for module, name in names if not _is_own_class(name, module)}

    assert missing == (_CODE.keys() - {"__lambda__"}) | _WITHOUT_A_MODEL | (_TAKE_FUNCTIONS)


def test_words_from_a_file_of_the_disk_are_found() -> None:
    """A layer that looks words up is safe with a list of them, and not with a path."""
    for words, rules in ((["a", "b"], []), (None, []), ("/etc/passwd", ["path-escapes"])):
        layer = {
            "module": "keras.layers",
            "class_name": "StringLookup",
            "config": {"vocabulary": words},
            "registered_name": None,
        }
        members = {"metadata.json": b"{}", "config.json": json.dumps(layer).encode()}
        report = scan_bytes(zipped(members), "m.keras")

        assert [finding.rule for finding in report.findings] == rules


def test_what_only_has_the_name_of_weights_is_looked_at() -> None:
    """A member of a Keras archive that is called as its weights are is not taken for them."""
    config = json.dumps({"module": "keras", "class_name": "Sequential", "config": {}}).encode()
    data = zipped({"config.json": config, "model.weights.h5": PAYLOAD, "metadata.json": b"{}"})

    assert "os.system" in {finding.name for finding in scan_bytes(data, "m.keras").findings}
