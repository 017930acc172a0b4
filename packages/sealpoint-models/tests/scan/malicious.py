# SPDX-License-Identifier: Apache-2.0
"""Files that nobody should load, by the trick that hides what they do. None is ever loaded.

Each group is one way in which scanners were led past a payload. Where a payload is code, it is the
same harmless one everywhere; what differs is the way to it.
"""

import base64
import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from tests.scan.assembler import (
    COMMAND,
    PAYLOAD,
    call,
    framed,
    name,
    npy,
    old_text,
    pickle,
    safetensors,
    spoken,
    stack_name,
    tarred,
    text,
    torch_zip,
    zipped,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One file."""

    group: str
    label: str
    file: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.group}: {self.label}"


_GADGETS = """
os system; posix system; nt system; os popen; os execv; subprocess Popen
subprocess check_output; builtins eval; builtins exec; __builtin__ eval; builtins getattr
builtins __import__; builtins open; builtins compile; builtins print; builtins globals
runpy _run_code; runpy run_path; pty spawn; asyncio.unix_events _UnixSubprocessTransport._start
cProfile run; cProfile runctx; profile run; profile Profile.run; trace Trace.run
code InteractiveInterpreter.runcode; ctypes CDLL; timeit timeit; distutils.file_util write_file
doctest debug_script; ensurepip _run_pip; uuid _get_command_stdout
idlelib.autocomplete AutoComplete.get_entity; idlelib.calltip get_entity
idlelib.run Executive.runcode; idlelib.pyshell ModifiedInterpreter.runcommand
idlelib.debugobj ObjectTreeItem.SetText; imaplib IMAP4_stream
lib2to3.pgen2.grammar Grammar.loads; lib2to3.pgen2.pgen ParserGenerator.make_label
numpy.f2py.crackfortran getlincoef; numpy.testing._private.utils runstring; numpy load
operator attrgetter; operator methodcaller; _operator attrgetter; _operator methodcaller
pkgutil resolve_name; pydoc locate; pydoc pipepager; ssl get_server_certificate
test.support.script_helper assert_python_ok; torch._dynamo.guards GuardBuilder.get
torch.fx.experimental.symbolic_shapes ShapeEnv.evaluate_guards_expression
torch.jit.unsupported_tensor_ops execWrapper
torch.utils._config_module ConfigModule.load_config
torch.utils.bottleneck.__main__ run_cprofile; torch.utils.collect_env run
torch.utils.data.datapipes.utils.decoder basichandlers; torch._inductor.codecache compile_file
torch.storage _load_from_bytes; torch.hub load; torch load; torch.serialization load
_osx_support _read_output; _aix_support _read_cmd_output; _pyrepl.pager pipe_pager
cloudpickle.cloudpickle _make_function; types CodeType; types FunctionType; io FileIO; io open
logging FileHandler; logging.config dictConfig; importlib import_module
importlib.util find_spec; marshal loads; pickle loads; _pickle loads
multiprocessing.util spawnv_passfds; shutil rmtree; torch.library torch.utils.collect_env.run
pathlib os.system; pathlib Path.write_text; mlflow.pyfunc load_model; pandas read_csv
pandas read_pickle; joblib load; smtplib SMTP; urllib.request urlopen; socket socket
webbrowser open; http.client HTTPSConnection; sys exit; signal raise_signal; functools partial
functools reduce; itertools starmap; concurrent.futures Future; threading Thread; venv create
bdb Bdb.run; pdb run; site execsitecustomize; tempfile mktemp; zipimport zipimporter
gc get_objects; sqlite3 connect; xmlrpc.client ServerProxy; dill _dill; collections namedtuple
enum Enum
"""


def gaps_of_denylists() -> Iterator[Sample]:
    """Functions that run what they are given, of which every list of bad names misses some."""
    for line in _GADGETS.strip().splitlines():
        for number, gadget in enumerate(line.split(";")):
            module, attribute = gadget.split()
            protocol = (0, 2, 4)[number % 3]
            yield Sample("1", f"{module}.{attribute}", "m.pkl", spoken(module, attribute, protocol))


_DIFFERENTIALS: dict[str, bytes] = {
    "a frame shorter than its argument": framed(
        stack_name("os", "system") + text(COMMAND) + b"\x85R.", length=6
    ),
    "a frame longer than the file": framed(call("os", "system") + b".", length=1 << 40),
    "a frame inside of a frame": framed(b"\x95" + bytes(8) + call("os", "system") + b"."),
    "an empty frame before the payload": framed(call("os", "system") + b".", length=0),
    "a hexadecimal int": b"I0x41\n0" + call("os", "system") + b".",
    "an octal int": b"I0o17\n0" + call("os", "system") + b".",
    "an int with underscores": b"I1_000\n0" + call("os", "system") + b".",
    "an int with spaces": b"I 1 \n0" + call("os", "system") + b".",
    "an int with a NUL byte": b"I1\x002\n0" + call("os", "system") + b".",
    "a long without its letter": b"L12\n0" + call("os", "system") + b".",
    "a long with a NUL byte": b"L1\x00L\n0" + call("os", "system") + b".",
    "a float with a NUL byte": b"F1.5\x00\n0" + call("os", "system") + b".",
    "a float that is a word": b"Finfinity\n0" + call("os", "system") + b".",
    "a byte string of negative length": b"T\xff\xff\xff\xff" + call("os", "system") + b".",
    "a text of other quotes": b'S"a"\n0' + call("os", "system") + b".",
    "a text of unpaired quotes": b"S'a\"\n0" + call("os", "system") + b".",
    "a text without quotes": b"Sabc\n0" + call("os", "system") + b".",
    "a number of the memo beyond memory": b"Np4294967295\n0" + call("os", "system") + b".",
    "a negative number of the memo": b"Np-1\n0" + call("os", "system") + b".",
    "an extension of negative number": b"\x80\x02\x84\xff\xff\xff\xff)R.",
    "values left over": b"NN" + call("os", "system") + b".",
    "a mark left over": b"(" + call("os", "system") + b".",
    "a protocol beyond the highest": b"\x80\x09" + call("os", "system") + b".",
    "a protocol in the middle": b"\x80\x02N0\x80\x04" + call("os", "system") + b".",
    "a name with a carriage return": b"\x80\x02cos\r\nsystem\n" + old_text(COMMAND) + b"\x85R.",
    "a name that is not UTF-8": b"\x80\x02c\xffos\nsystem\n" + old_text(COMMAND) + b"\x85R.",
    "raw escapes in a text": b"V\\u006fs\n0" + call("os", "system") + b".",
    "bytes before the pickle": b"\n" + PAYLOAD,
    "a second pickle after a harmless one": b"\x80\x02N." + PAYLOAD,
}


def parser_differentials() -> Iterator[Sample]:
    """What Python's own readers of pickles disagree about."""
    for label, data in _DIFFERENTIALS.items():
        yield Sample("2", label, "m.pkl", data)
        yield Sample("2", f"{label}, in a zip", "m.zip", zipped({"m.pkl": data}))
    for label in ("a hexadecimal int", "a text of other quotes", "an int with spaces"):
        for file in ("README.md", "weights"):
            yield Sample("2", f"{label}, called {file}", file, _DIFFERENTIALS[label])


_ON_STACK = old_text(COMMAND) + b"\x85R"
_STACK_GAMES: dict[str, bytes] = {
    "the call is dropped": name("os", "system") + _ON_STACK + b"0N",
    "the call is dropped with a mark": b"(" + name("os", "system") + _ON_STACK + b"1N",
    "the name is dropped": name("os", "system") + b"0N",
    "the name from the memo": name("os", "system") + b"q\x000h\x00" + _ON_STACK,
    "the texts of the name from the memo": b"X\x02\x00\x00\x00osq\x000X\x06\x00\x00\x00systemq\x010"
    b"h\x00h\x01\x93" + _ON_STACK,
    "a number of the memo twice": old_text("math")
    + b"q\x000"
    + old_text("os")
    + b"q\x00"
    + old_text("system")
    + b"\x93"
    + _ON_STACK,
    "numbers of the memo with a gap": old_text("os")
    + b"q\x05"
    + old_text("system")
    + b"\x93"
    + _ON_STACK,
    "memoize after put": old_text("math") + b"q\x02\x94" + b"0" + name("os", "system") + _ON_STACK,
    "a value that was never remembered": b"h\x63" + name("os", "system") + _ON_STACK,
    "a name of numbers": b"K\x01K\x02\x93" + name("os", "system") + _ON_STACK,
    "a name of names": name("os", "system") + name("os", "system") + b"\x93" + _ON_STACK,
    "an object": b"(" + name("os", "system") + old_text(COMMAND) + b"o",
    "an instance": b"(" + old_text(COMMAND) + b"ios\nsystem\n",
    "a new object": name("subprocess", "Popen") + old_text(COMMAND) + b"\x85\x81",
    "a new object with keywords": name("subprocess", "Popen")
    + b")}"
    + old_text("args")
    + old_text(COMMAND)
    + b"s\x92",
    "a state that sets attributes": name("sys", "modules") + b"}" + old_text("os") + b"Nsb",
    "a state on a name": name("builtins", "object") + b"N}" + old_text("a") + b"Ns\x86b",
    "a state of slots": name("collections", "OrderedDict")
    + b")RN}"
    + old_text("__class__")
    + name("os", "system")
    + b"s\x86b",
    "a call of a call": name("builtins", "getattr")
    + name("os", "system")
    + old_text("__call__")
    + b"\x86R"
    + _ON_STACK,
    "a call of a text": old_text("os.system") + _ON_STACK,
    "a call of a list": b"]" + _ON_STACK,
    "a call of what is referred to": b"X\x01\x00\x00\x00aQ" + _ON_STACK,
    "a call of a number": b"K\x01" + _ON_STACK,
    "a call with a list for its arguments": name("os", "system") + b"]" + old_text(COMMAND) + b"aR",
    "items of a call": name("os", "environ") + old_text("LD_PRELOAD") + old_text("x.so") + b"s",
    "a name in a key": b"}" + name("os", "system") + b"Ns",
    "a name in a set": b"(" + name("os", "system") + b"\x91",
    "a name as an argument of a known one": name("collections", "OrderedDict")
    + name("os", "system")
    + b"\x85R",
    "a factory that is a function": name("collections", "defaultdict")
    + name("os", "system")
    + b"\x85R",
    "doubled": name("os", "system") + b"2" + _ON_STACK + b"0" + _ON_STACK,
    "through builtins of a module": name("numpy", "size.__builtins__") + b")R",
    "a dotted name": stack_name("collections", "abc.sys.modules") + b")R",
    "a reference that is a call": name("os", "system") + _ON_STACK + b"Q",
    "a text reference": call("os", "system") + b"0Pabc\n",
    "a buffer that is not there": call("os", "system") + b"0\x97",
}


def stack_and_memo() -> Iterator[Sample]:
    """Calls that a reader loses sight of on the stack or in the memo."""
    for label, body in _STACK_GAMES.items():
        yield Sample("3", label, "m.pkl", pickle(body, 4))


def registry() -> Iterator[Sample]:
    """Names that stand in a registry of the process, by their number."""
    for width, code in ((1, 1), (1, 255), (2, 256), (2, 65535), (4, 65536), (4, 2**31 - 1)):
        opcode = {1: b"\x82", 2: b"\x83", 4: b"\x84"}[width]
        body = opcode + code.to_bytes(width, "little")
        yield Sample("4", f"extension {code}", "m.pkl", pickle(body + _ON_STACK))
        yield Sample("4", f"extension {code}, not called", "m.bin", pickle(body))
    added = name("copyreg", "add_extension") + old_text("os") + old_text("system") + b"K\x01\x87R0"
    yield Sample("4", "an extension is added", "m.pkl", pickle(added + b"\x82\x01" + _ON_STACK))
    registered = name("copyreg", "_inverted_registry") + b"K\x01" + old_text("os")
    registered += old_text("system") + b"\x86s0\x82\x01" + _ON_STACK
    yield Sample("4", "the registry is written", "m.pkl", pickle(registered))
    old = registered.replace(b"copyreg", b"copy_reg")
    yield Sample("4", "the registry is written, as in Python 2", "m.pkl", pickle(old))


_BREAKS: dict[str, bytes] = {
    "an invalid opcode": b"0\xff.",
    "no end": b"",
    "a stack that is empty": b"00000.",
    "a text that is cut off": b"X\xff\x00\x00\x00abc",
    "a line that is cut off": b"Sabc",
    "a frame that is cut off": b"\x95\x00",
    "a name that is cut off": b"cos\nsys",
    "a memo that is not there": b"0hz.",
    "a protocol that is not there": b"\x80\x7f.",
    "bytes after the end": b"." + bytes(64),
    "another file after the end": b"." + b"PK\x03\x04",
}


def broken_after_the_payload() -> Iterator[Sample]:
    """The payload has run when the reader fails: nobody may take the failure for a pass."""
    for label, tail in _BREAKS.items():
        for protocol in (0, 2):
            start = b"" if protocol == 0 else b"\x80\x02"
            data = start + call("os", "system") + tail
            yield Sample("5", f"{label}, protocol {protocol}", "m.pkl", data)
        yield Sample(
            "5", f"{label}, under another name", "m.dat", b"\x80\x04" + PAYLOAD[2:-1] + tail
        )


def _patched(data: bytes, at: int, change: bytes) -> bytes:
    return data[:at] + change + data[at + len(change) :]


def _with_flag(data: bytes, flag: int, *, both: bool = True) -> bytes:
    """The first member's flags, in the directory and in its own header."""
    central = data.index(b"PK\x01\x02")
    data = _patched(data, central + 8, struct.pack("<H", flag))
    return _patched(data, 6, struct.pack("<H", flag)) if both else data


def _two_of_one_name(first: bytes, second: bytes) -> bytes:
    """A zip with two members of one name."""
    data = zipped({"archive/data.pkl": first, "archive/data.pkx": second})
    return data.replace(b"archive/data.pkx", b"archive/data.pkl")


_HARMLESS = b"\x80\x02}."
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."


def _joblib(elements: bytes, kind: str, state: bytes = b"") -> bytes:
    """A file of joblib with one array, whose elements are given."""
    dtype = name("numpy", "dtype") + old_text(kind) + b"\x85R"
    attributes = {"dtype": dtype, "shape": b"K\x01\x85", "order": old_text("C")}
    pairs = b"".join(old_text(key) + value for key, value in attributes.items())
    wrapper = name("joblib.numpy_pickle", "NumpyArrayWrapper") + b")\x81}(" + pairs + b"u" + state
    return b"\x80\x02" + wrapper + b"b" + elements + b"."


def _links() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("m.pkl")
        info.type = tarfile.SYMTYPE
        info.linkname = "../outside.pkl"
        archive.addfile(info)
    return buffer.getvalue()


def _gzip(data: bytes) -> bytes:
    """Packed, without the time at which: every run has the same samples."""
    return gzip.compress(data, mtime=0)


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    "lz4": lambda data: (
        b"\x04\x22\x4d\x18\x60\x40\x82"
        + struct.pack("<I", len(data) | 0x80000000)
        + data
        + bytes(4)
    ),
}


def _keras(config: object) -> bytes:
    return zipped({"metadata.json": b"{}", "config.json": json.dumps(config).encode()})


_STORED = torch_zip(PAYLOAD)
_ZIPS: dict[str, tuple[str, bytes]] = {
    "encrypted, says a flag": ("m.pt", _with_flag(_STORED, 0x1)),
    "patched, says a flag": ("m.pt", _with_flag(_STORED, 0x20)),
    "strongly encrypted, says a flag": ("m.pt", _with_flag(_STORED, 0x40)),
    "encrypted, says the directory alone": ("m.pt", _with_flag(_STORED, 0x1, both=False)),
    "a wrong checksum": ("m.pt", _patched(_STORED, 14, b"\x00\x00\x00\x00")),
    "a wrong checksum in the directory": (
        "m.zip",
        _patched(_STORED, _STORED.index(b"PK\x01\x02") + 16, b"\x00\x00\x00\x00"),
    ),
    "another name in the header": (
        "m.pt",
        _STORED.replace(b"archive/data.pkl", b"archive/data.txt", 1),
    ),
    "another name in the directory": (
        "m.zip",
        _patched(_STORED, _STORED.index(b"PK\x01\x02") + 46, b"archive/data.txt"),
    ),
    "two of one name, the first harmless": ("m.pt", _two_of_one_name(_HARMLESS, PAYLOAD)),
    "two of one name, the second harmless": ("m.pt", _two_of_one_name(PAYLOAD, _HARMLESS)),
    "names that differ in case": (
        "m.zip",
        zipped({"A.pkl": _HARMLESS, "a.pkl": _HARMLESS}),
    ),
    "bytes before it": ("m.pt", b"\x00" * 16 + _STORED),
    "a pickle before it": ("m.pt", PAYLOAD + _STORED),
    "a harmless pickle before it": ("m.bin", _HARMLESS + _STORED),
    "bytes after it": ("m.pt", _STORED + b"\x00" * 16),
    "a comment with another zip": ("m.zip", zipped({"a.txt": b"a"}, comment=_STORED)),
    "compressed": ("m.pt", torch_zip(PAYLOAD, method=zipfile.ZIP_DEFLATED)),
    "compressed and harmless": ("m.pt", torch_zip(_HARMLESS, method=zipfile.ZIP_DEFLATED)),
    "bzip2 inside": ("m.zip", zipped({"m.pkl": PAYLOAD}, method=zipfile.ZIP_BZIP2)),
    "lzma inside": ("m.zip", zipped({"m.pkl": PAYLOAD}, method=zipfile.ZIP_LZMA)),
    "a zip in a zip": ("m.zip", zipped({"a/m.zip": zipped({"m.pkl": PAYLOAD})})),
    "a tar in a zip": ("m.zip", zipped({"m.tar": tarred({"m.pkl": PAYLOAD})})),
    "a member that leads out": ("m.zip", zipped({"../../m.txt": b"text"})),
    "a member with a path of its own": ("m.zip", zipped({"/etc/m.txt": b"text"})),
    "TorchScript": (
        "m.pt",
        zipped({"m/constants.pkl": _HARMLESS, "m/code/a.py": b"", "m/data.pkl": _HARMLESS}),
    ),
    "torch.package": (
        "m.pt",
        zipped({"m/.data/extern_modules": b"", "m/a.py": b"import os", "m/m.pkl": PAYLOAD}),
    ),
    "torch.export": ("m.pt2", zipped({"m/archive_format": b"pt2", "m/data.pkl": PAYLOAD})),
    "torch.export, its older form": (
        "m.pt2",
        zipped({"serialized_exported_program.json": b"{}", "version": b"8.8"}),
    ),
    "TorchServe": ("m.mar", zipped({"MAR-INF/MANIFEST.json": b"{}", "handler.py": b"pass"})),
    "an .npz with objects": ("m.npz", zipped({"a.npy": npy(PAYLOAD)})),
    "an .npz with a pickle": ("m.npz", zipped({"a.npy": PAYLOAD})),
    "a Keras model with a Lambda": (
        "m.keras",
        _keras({"module": "keras.layers", "class_name": "Lambda", "config": {}}),
    ),
    "a Keras model with a function": (
        "m.keras",
        _keras({"config": {"function": {"class_name": "__lambda__", "config": {"code": "4w=="}}}}),
    ),
    "a Keras model with a module of somebody": (
        "m.keras",
        _keras({"module": "os", "class_name": "system", "config": {}}),
    ),
    "a Keras model with a function of Keras": (
        "m.keras",
        _keras({"module": "keras.utils", "class_name": "get_file", "config": {}}),
    ),
    "a Keras model with a registered class": (
        "m.keras",
        _keras({"class_name": "Dense", "registered_name": "Custom>Dense", "module": None}),
    ),
    "a Keras model that loads another": (
        "m.keras",
        _keras({"module": "keras.layers", "class_name": "TFSMLayer", "config": {}}),
    ),
    "a Keras model with a member twice": (
        "m.keras",
        zipped({"metadata.json": b"{}", "config.json": b'{"module": "keras", "module": "os"}'}),
    ),
}
_OTHERS: dict[str, tuple[str, bytes]] = {
    "joblib, the payload in an array of objects": ("m.joblib", _joblib(PAYLOAD, "O8")),
    "joblib, the payload after an array": ("m.joblib", _joblib(bytes(8) + PAYLOAD[2:-1], "f8")),
    "joblib, elements that are opcodes": ("m.joblib", _joblib(PAYLOAD[2:-1], "f8")),
    "joblib, an array of no type": ("m.joblib", _joblib(bytes(8), "Z8")),
    "a tar": ("m.tar", tarred({"m.pkl": PAYLOAD})),
    "a tar, packed": ("m.tar.gz", tarred({"m.pkl": PAYLOAD}, "w:gz")),
    "a tar, packed with bzip2": ("m.tar.bz2", tarred({"m.pkl": PAYLOAD}, "w:bz2")),
    "a tar, packed with xz": ("m.tar.xz", tarred({"m.pkl": PAYLOAD}, "w:xz")),
    "a tar of old torch": (
        "m.pth",
        tarred({"sys_info": _HARMLESS, "pickle": PAYLOAD, "storages": b"", "tensors": b""}),
    ),
    "a tar with a link": ("m.tar", _links()),
    "a tar that goes on after its end": (
        "m.tar",
        tarred({"a.txt": b"a"}) + tarred({"m.pkl": PAYLOAD}),
    ),
    "a tar that is a model by its name": ("m.safetensors", tarred({"m.pkl": PAYLOAD})),
    "an .npy with objects": ("m.npy", npy(PAYLOAD)),
    "an .npy that is a pickle": ("m.npy", PAYLOAD),
    "an .npy with code in its header": (
        "m.npy",
        b"\x93NUMPY\x01\x00\x34\x00{'descr': __import__('os').system('touch marker')}     \n",
    ),
    "a pickle called .safetensors": ("m.safetensors", PAYLOAD),
    "a harmless pickle called .safetensors": ("m.safetensors", _HARMLESS),
    "a pickle called .gguf": ("m.gguf", PAYLOAD),
    "a pickle called .onnx": ("m.onnx", PAYLOAD),
    "a pickle called .h5": ("m.h5", PAYLOAD),
    "a pickle called .json": ("config.json", call("os", "system") + b"."),
    "a pickle without an ending": ("weights", PAYLOAD),
    "a pickle under a name of text": ("README.md", call("os", "system") + b"."),
    "a zip called .safetensors": ("m.safetensors", _STORED),
    "safetensors and a zip": ("m.safetensors", safetensors() + _STORED),
    "safetensors with a zip as its elements": (
        "m.safetensors",
        safetensors(
            json.dumps(
                {"a": {"dtype": "U8", "shape": [len(_STORED)], "data_offsets": [0, len(_STORED)]}}
            ).encode(),
            _STORED,
        ),
    ),
    "an image and a pickle": ("a.gif", b"GIF89aabc0" + call("os", "system") + b"."),
    "an older image and a pickle": ("weights", b"GIF87aabc0" + PAYLOAD),
    "an image and a pickle that sets an item": (
        "a.gif",
        b"GIF89aabc0" + name("os", "environ") + b"S'LD_PRELOAD'\nS'x.so'\ns.",
    ),
    "a tar and a pickle": (
        "m.tar",
        tarred({(call("os", "system") + b".").decode(): b"a"}),
    ),
    "an image and a zip": ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(64) + _STORED),
    "HDF5": ("m.h5", b"\x89HDF\r\n\x1a\n" + b"model_config" + bytes(64)),
    "7-Zip": ("m.7z", b"7z\xbc\xaf\x27\x1c" + bytes(64)),
    "7-Zip called .pt": ("m.pt", b"7z\xbc\xaf\x27\x1c" + bytes(64)),
    "RAR": ("m.rar", b"Rar!\x1a\x07\x00" + bytes(64)),
    "Zstandard": ("m.pkl", b"\x28\xb5\x2f\xfd" + bytes(64)),
    "a SavedModel": ("saved_model.pb", b"\x08\x01\x12\x80\x01\x0a" + bytes(128)),
    "a program": ("m.bin", b"\x7fELF" + bytes(64)),
    "a script called .pt": ("m.pt", b"#!/bin/sh\ntouch marker\n"),
    "an ONNX model with elements elsewhere": (
        "m.onnx",
        b"\x08\x07\x3a\x1c\x2a\x1a\x6a\x18\x0a\x08location\x12\x0c../../secret",
    ),
    "an ONNX model with a path of its own": (
        "m.onnx",
        b"\x08\x07\x3a\x1b\x2a\x19\x6a\x17\x0a\x08location\x12\x0b/etc/passwd",
    ),
    "old torch, the payload in the fourth pickle": ("m.pth", _LEGACY + PAYLOAD + b"\x80\x02]."),
    "old torch, the payload in the fifth pickle": ("m.pth", _LEGACY + _HARMLESS + PAYLOAD),
    "old torch, the payload in the third pickle": (
        "m.pth",
        _LEGACY[: -len(_HARMLESS)] + PAYLOAD + _HARMLESS + b"\x80\x02].",
    ),
}


def containers() -> Iterator[Sample]:
    """The pickle lies in something that a scanner does not open, or reads in another way."""
    for label, (file, data) in (_ZIPS | _OTHERS).items():
        yield Sample("6", label, file, data)
    for kind, pack in _PACKERS.items():
        yield Sample("6", f"packed with {kind}", "m.joblib", pack(PAYLOAD))
        yield Sample("6", f"packed with {kind} twice", "m.pkl", pack(_gzip(PAYLOAD)))
        yield Sample("6", f"packed with {kind}, and more after it", "m.pkl", pack(_HARMLESS) + b"x")
        yield Sample(
            "6", f"packed with {kind}, no ending", "model", pack(spoken("os", "system", 4))
        )


_WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "raw": lambda data: b"B" + struct.pack("<I", len(data)) + data,
    "raw, as an array of bytes": lambda data: b"\x96" + struct.pack("<Q", len(data)) + data,
    "as a text of Latin-1": lambda data: old_text(data.decode("latin-1")),
    "base 64": lambda data: old_text(base64.b64encode(data).decode()),
    "base 64, in lines": lambda data: old_text(base64.encodebytes(data).decode()),
    "base 64 for addresses": lambda data: old_text(base64.urlsafe_b64encode(data).decode()),
    "base 64 as bytes": lambda data: (
        b"C" + bytes([len(base64.b64encode(data))]) + base64.b64encode(data)
    ),
    "hexadecimal": lambda data: old_text(data.hex()),
    "hexadecimal, large letters": lambda data: old_text(data.hex().upper()),
    "packed": lambda data: b"B" + struct.pack("<I", len(zlib.compress(data))) + zlib.compress(data),
    "packed, in base 64": lambda data: old_text(base64.b64encode(_gzip(data)).decode()),
}


def _streams() -> dict[str, bytes]:
    """Streams of torch before 1.6 that call something in one of their five pickles."""
    magic, machine = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19", b"}(" + old_text("protocol_version")
    machine += b"M\xe9\x03" + old_text("little_endian") + b"\x88u"
    reference = b"(" + old_text("storage") + name("torch", "ByteStorage") + old_text("0")
    reference += old_text("cpu") + b"K\x01NtQ"
    parts = {
        "in its number": magic,
        "in its version": b"M\xe9\x03",
        "in its machine": machine,
        "beside its storage": reference,
        "in its keys": b"]" + old_text("0") + b"a",
    }
    hidden = name("os", "system") + old_text(COMMAND) + b"\x85R0"
    found = {
        label: b"".join(
            pickle((hidden if at == label else b"") + part) for at, part in parts.items()
        )
        for label in parts
    }
    found["in place of its storage"] = b"".join(
        map(pickle, (magic, b"M\xe9\x03", machine, hidden[:-1], b"]"))
    )
    return {
        label: data + struct.pack("<q", 1) + b"\0" if "place" not in label else data
        for label, data in found.items()
    }


def nested_pickles() -> Iterator[Sample]:
    """A pickle inside of the data of another, for somebody who loads it later."""
    inner = {protocol: spoken("os", "system", protocol) for protocol in (0, 2, 4)}
    for label, wrap in _WRAPPERS.items():
        for protocol, data in inner.items():
            body = b"}" + old_text("optimizer") + wrap(data) + b"s"
            yield Sample("7", f"{label}, protocol {protocol}", "m.pkl", pickle(body, 5))
    for label, data in _streams().items():
        held = _WRAPPERS["raw"](data)
        yield Sample("7", f"in a stream of torch, {label}", "m.pkl", pickle(b"]" + held + b"a", 5))
        load = name("torch.storage", "_load_from_bytes") + held + b"\x85R"
        yield Sample("7", f"in a storage of torch, {label}", "m.pkl", pickle(load, 5))
        yield Sample(
            "7", f"in a storage that is dropped, {label}", "m.pkl", pickle(load + b"0N", 5)
        )
    twice = _WRAPPERS["base 64"](pickle(b"]" + _WRAPPERS["raw"](inner[2]) + b"a"))
    yield Sample("7", "in a pickle in a pickle", "m.pkl", pickle(b"]" + twice + b"a"))


_SINKS: dict[str, object] = {
    "Hydra": {"_target_": "os.system", "_args_": [COMMAND]},
    "Hydra, deep": {"model": {"optimizer": [{"_target_": "builtins.eval"}]}},
    "Lightning": {"hyper_parameters": {"_instantiator": "os.system"}},
    "Lightning's command line": {"class_path": "subprocess.Popen", "init_args": {"args": COMMAND}},
    "transformers": {"auto_map": {"AutoModel": "modeling.Model"}},
    "jsonpickle": {"py/object": "os.system"},
    "jsonpickle, reduced": {"py/reduce": [{"py/function": "os.system"}, {"py/tuple": [COMMAND]}]},
    "Keras": {"class_name": "Lambda", "__lambda__": {"code": "4w=="}},
    "JSON in a text": {"config": json.dumps({"_target_": "os.system"})},
    "YAML in a text": {"config": "a:\n  _target_: os.system\n"},
    "YAML with a tag": {"config": "!!python/object/apply:os.system ['touch marker']"},
}


_DOCUMENTS: dict[str, tuple[str, bytes]] = {
    "code of a repository": ("config.json", b'{"auto_map": {"AutoModel": "evil.Model"}}'),
    "code of a repository, escaped": ("config.json", b'{"auto\\u005fmap" :{"AutoModel": "a.B"}}'),
    "a tokenizer's code": (
        "tokenizer_config.json",
        b'{"auto_map": {"AutoTokenizer": ["a.B", null]}}',
    ),
    "a pipeline's code": ("config.json", b'{"custom_pipelines": {"mine": {"impl": "evil.Mine"}}}'),
    "jsonpickle, escaped": ("state.json", b'{"py\\/object": "os.system"}'),
    "Hydra in a text of JSON": ("run.json", b'{"a": "{\\"_target_\\": \\"os.system\\"}"}'),
    "JSON in UTF-16": ("config.json", '{"auto_map": {"AutoModel": "a.B"}}'.encode("utf-16")),
    "Hydra": ("hydra.yaml", b"model:\n  _target_: os.system\n"),
    "Hydra, escaped": ("config.yml", b'"\\x5ftarget_": os.system\n'),
    "Hydra, on two lines": ("config.yaml", b'? "_tar\\\n  get_"\n: os.system\n'),
    "Hydra, by an alias": ("config.yaml", b"a: &key _target_\n*key : os.system\n"),
    "Hydra, a long key": ("config.yaml", b"? >-\n  _target_\n: os.system\n"),
    "a tag": ("a.yaml", b"!!python/object/apply:os.system ['touch marker']\n"),
    "a tag of a name": ("a.yaml", b"a: !!python/name:os.system ''\n"),
    "a tag of a module": ("a.yaml", b"[!!python/module:os '']\n"),
    "a tag in full": ("a.yaml", b"!<tag:yaml.org,2002:python/object/new:os.system> ['x']\n"),
    "a tag, escaped": ("a.yaml", b"!!p%79thon/object:os.system {}\n"),
    "a tag with another name": (
        "a.yaml",
        b"%TAG !e! tag:yaml.org,2002:pyth\n---\n!e!on/object/apply:os.system ['x']\n",
    ),
    "a tag with another name, behind a mark": (
        "a.yaml",
        b"\xef\xbb\xbf%TAG !e! tag:yaml.org,2002:pyth\n---\n!e!on/name:os.system ''\n",
    ),
    "a tag with another name, in other lines": (
        "a.yaml",
        b"# a\r%TAG !e! tag:yaml.org,2002:pyth\r---\r!e!on/name:os.system ''\r",
    ),
    "Hydra, on two other lines": ("a.yaml", b'? "_tar\\\xe2\x80\xa8  get_"\n: os.system\n'),
    "a tag behind a comment": ("a.yaml", b"#!/bin/a\n!!python/object/apply:os.system ['x']\n"),
    "YAML in UTF-16": ("a.yaml", "!!python/object/apply:os.system ['x']".encode("utf-16")),
    "a module": ("modeling_evil.py", b"import os\n"),
    "a module with a line for a shell": ("modeling_evil.py", b"#!/usr/bin/python\nimport os\n"),
    "a compiled module": ("modeling_evil.pyc", b"\xcb\r\r\n" + bytes(12) + b"\xe3"),
    "a module in an archive": ("m.zip", zipped({"config.txt": b"a", "evil.py": b"import os\n"})),
    "a template": ("chat_template.jinja", b"{{ x.__class__ }}"),
    "an unknown format that imports": ("m.xyz", b"\x80\x7f" + PAYLOAD),
}
"""Files beside a model, each with its name: frameworks read these, too."""


def _plain(value: object) -> bytes:
    """Opcodes of protocol 2 for plain data."""
    if isinstance(value, dict):
        items = b"".join(_plain(key) + _plain(each) for key, each in value.items())
        return b"}(" + items + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(_plain, value)) + b"e"
    return old_text(str(value))


def sinks() -> Iterator[Sample]:
    """Plain data that names code for a framework which reads it after the load."""
    for label, value in _SINKS.items():
        yield Sample("8", label, "m.ckpt", pickle(_plain(value)))
        held = name("collections", "OrderedDict") + b")R" + old_text("a") + _plain(value) + b"s"
        yield Sample("8", f"{label}, in an ordered dict", "m.ckpt", pickle(held))
    for label, (file, document) in _DOCUMENTS.items():
        yield Sample("8", f"a document: {label}", file, document)
    metadata = json.dumps({"__metadata__": {"config": json.dumps(_SINKS["Hydra"])}}).encode()
    yield Sample("8", "Hydra, in metadata", "m.safetensors", safetensors(metadata))


_LINEAR = name("torch.nn.modules.linear", "Linear")
_ARGUMENTS = name("transformers.training_args", "TrainingArguments")
_STRATEGY = name("transformers.trainer_utils", "SaveStrategy")
_BITS = name("numpy.random._pickle", "__bit_generator_ctor")
_MASKED = name("numpy.ma.core", "_mareconstruct")
_F8 = name("numpy", "dtype") + old_text("f8") + b"\x89\x88\x87R"
_F8_STATE = b"(K\x03" + old_text("<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0t"
_OBJECT = _LINEAR + b")\x81"


def _with(value: bytes) -> bytes:
    """An object of a layer, with one attribute."""
    return _OBJECT + b"}" + old_text("activation") + value + b"sb"


def _masked(cls: bytes, kind: bytes, after: bytes = b"") -> bytes:
    made = _MASKED + b"(" + cls + name("numpy", "ndarray") + b"K\0\x85" + old_text("b") + b"tR"
    state = b"(K\x01K\x01\x85" + kind + b"\x89" + old_text("a" * 8) + old_text("a") + b"Nt"
    return made + state + b"b" + after


_MISUSES: dict[str, bytes] = {
    "a call of a class": _ARGUMENTS + old_text(COMMAND) + b"\x85R",
    "an object with arguments": _ARGUMENTS + old_text(COMMAND) + b"\x85\x81",
    "an object with keywords": _ARGUMENTS + b")}" + old_text("a") + b"Ns\x92",
    "an object with items": _OBJECT + old_text("a") + b"Ns",
    "an object with members": _OBJECT + b"Na",
    "an object with slots": _OBJECT + b"N}" + old_text("a") + b"Ns\x86b",
    "an object with another state": _OBJECT + old_text("a") + b"b",
    "an object with two states": _OBJECT + b"}b}b",
    "an object whose attributes have numbers": _OBJECT + b"}K\x01Nsb",
    "an object as a key": b"}" + _OBJECT + b"Ns",
    "an object in a set": name("builtins", "set") + b"](" + _OBJECT + b"e\x85R",
    "an object of a base": name("copyreg", "_reconstructor")
    + b"("
    + _LINEAR
    + name("builtins", "dict")
    + b"}tR",
    "a class as an attribute": _with(_ARGUMENTS),
    "a class in a list": _with(b"]" + _ARGUMENTS + b"a"),
    "a class as a factory": name("collections", "defaultdict") + _ARGUMENTS + b"\x85R",
    "a class for a tensor": name("torch._tensor", "_rebuild_from_type_v2")
    + b"("
    + _ARGUMENTS
    + name("torch", "Tensor")
    + b")}tR",
    "a name of another module as an attribute": _with(name("os", "system")),
    "a function of tensors that is called": name("torch.nn.functional", "relu")
    + old_text("a")
    + b"\x85R",
    "a name through a class": stack_name("torch.nn.modules.linear", "Linear.__init__") + b")R",
    "a name through a module": stack_name("torch.nn.modules.linear", "torch.hub.load") + b")R",
    "a member of no value": _STRATEGY + b")R",
    "a member of two values": _STRATEGY + old_text("a") + old_text("b") + b"\x86R",
    "a member of an object": _STRATEGY + _OBJECT + b"\x85R",
    "bits of a class": _BITS + _ARGUMENTS + b"\x85R}b",
    "bits of an object": _BITS + _OBJECT + b"\x85R}b",
    "bits that are called": name("numpy.random._pcg64", "PCG64") + b"K\x01\x85R",
    "a generator with another maker": name("numpy.random._pickle", "__generator_ctor")
    + old_text(COMMAND)
    + _ARGUMENTS
    + b"\x86R",
    "a masked array of another class": _masked(_LINEAR, _F8 + _F8_STATE + b"b"),
    "a masked array whose type changes": _masked(
        name("numpy.ma", "MaskedArray"), _F8 + b"q\x05", b"0h\x05" + _F8_STATE + b"b"
    ),
    "a masked array of pointers": _masked(
        name("numpy.ma", "MaskedArray"),
        _F8 + _F8_STATE[:-3] + b"K\x3ftb",
    ),
    "a seed of another class": name("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence")
    + _LINEAR
    + b"K\x01N\x87R",
}


def misused_classes() -> Iterator[Sample]:
    """Names of known classes, made to do something else than store what they are given."""
    for label, body in _MISUSES.items():
        yield Sample("A", label, "m.pkl", pickle(body, 4))


def _nested_lists() -> bytes:
    """Forty lists, each of which holds the one before it ten times."""
    body = b"(]q\x00"
    for number in range(40):
        body += b"](" + (b"h" + bytes([number])) * 10 + b"eq" + bytes([number + 1])
    return body + b"t"


def denial_of_service() -> Iterator[Sample]:
    """Small files that ask for more time or memory than any reader has."""
    yield Sample("9", "lists of lists", "m.pkl", pickle(_nested_lists()))
    yield Sample("9", "very deep", "m.pkl", b"\x80\x02" + b"](" * 100_000 + b"e" * 100_000 + b".")
    yield Sample("9", "tuples, very deep", "m.pkl", b"\x80\x02N" + b"\x85" * 200_000 + b".")
    yield Sample("9", "a memo beyond memory", "m.pkl", b"\x80\x02Nr\xff\xff\xff\xff.")
    yield Sample("9", "a text beyond memory", "m.pkl", b"\x80\x04\x8d" + b"\xff" * 7 + b"\x00.")
    yield Sample("9", "a long beyond memory", "m.pkl", b"\x80\x02\x8b\xff\xff\xff\x7f.")
    yield Sample("9", "a stream that unpacks to much", "m.pkl.gz", _gzip(bytes(1 << 26)))
    yield Sample("9", "the same for bzip2", "m.pkl.bz2", bz2.compress(bytes(1 << 26)))
    yield Sample("9", "the same for xz", "m.pkl.xz", lzma.compress(bytes(1 << 26)))
    packed = zipped({"a.bin": bytes(1 << 26)}, method=zipfile.ZIP_DEFLATED)
    yield Sample("9", "the same for zip", "m.zip", packed)
    nested = PAYLOAD
    for _ in range(12):
        nested = zipped({"m.zip": nested})
    yield Sample("9", "many zips in zips", "m.zip", nested)
    header = b'{"a":' * 200 + b"1" + b"}" * 200
    yield Sample("9", "a deep header", "m.safetensors", safetensors(header))
    yield Sample("9", "a huge header", "m.safetensors", struct.pack("<Q", 1 << 60) + b"{}")
    yield Sample(
        "9", "more keys than bytes", "m.gguf", b"GGUF" + struct.pack("<I2Q", 3, 0, 1 << 40)
    )


GROUPS: dict[str, Callable[[], Iterator[Sample]]] = {
    "gaps of denylists": gaps_of_denylists,
    "parser differentials": parser_differentials,
    "stack and memo": stack_and_memo,
    "registry of extensions": registry,
    "broken after the payload": broken_after_the_payload,
    "containers": containers,
    "nested pickles": nested_pickles,
    "names for a later reader": sinks,
    "denial of service": denial_of_service,
    "misused classes": misused_classes,
}
"""All ways, each with its samples."""


@cache
def malicious() -> tuple[Sample, ...]:
    """All samples; some take long to make."""
    return tuple(sample for samples in GROUPS.values() for sample in samples())
