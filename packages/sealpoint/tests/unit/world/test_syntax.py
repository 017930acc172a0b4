# SPDX-License-Identifier: Apache-2.0
"""Programs that say the same have one digest however they are written, and all others do not."""

import ast
import hashlib
import itertools
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.world import Import, read_syntax

_SAME = {
    "comment": ["x = 1", "x = 1  # one", "# before\nx = 1\n# after\n"],
    "blank lines": ["x = 1\ny = 2", "\n\nx = 1\n\n\n\ny = 2\n", "x = 1; y = 2"],
    "quotes": ["x = 'a'", 'x = "a"', "x = '''a'''", "x = u'a'", "x = '\\x61'", "x = 'a' ''"],
    "bytes": ["x = b'a'", 'x = B"a"', "x = b'\\x61'"],
    "numbers": ["x = 16", "x = 0x10", "x = 0b1_0000", "x = 0o20"],
    "floats": ["x = 1000.0", "x = 1e3", "x = 1_000."],
    "parentheses": ["x = 1 + 2 * 3", "x = (1 + (2 * 3))", "x = \\\n 1 + 2 \\\n * 3"],
    "a tuple": ["x = 1, 2", "x = (1, 2)", "x = (1, 2,)", "x = (\n    1,\n    2,\n)"],
    "calls": ["f(a, b=1)", "f(a, b=1,)", "f(\n  a,\n  b = 1\n)"],
    "indentation": ["if x:\n y", "if x:\n\ty", "if x: y", "if (x):\n        y\n"],
    "elif": ["if a: b\nelif c: d", "if a:\n b\nelse:\n if c:\n  d"],
    "an f-string": ["x = f'a{b}c'", 'x = f"a{b}c"', "x = f'a' f'{b}' 'c'", "x = f'a{ b :}c'"],
    "type comments": ["x = []", "x = []  # type: list[int]", "x = []  # type: ignore"],
    "letters": ["ﬁ = 1", "fi = 1"],
    "docstring": [
        'def f():\n    """One.\n\n    Two.\n    """',
        "def f():\n  '''One.\n\n  Two.'''",
        'def f():\n    """   One.   \n\n    Two.\n\n    """',
        'def f(): "One.\\n\\nTwo."',
    ],
    "a function": [
        "@d(1)\ndef f(a: int, *, b='c') -> str:\n    return a",
        '@d( 1 )  # why\ndef f(\n  a : int,\n  *,\n  b="c",\n) -> str: return (a)',
    ],
    "a class": [
        "class A(B):\n def f(self): pass",
        "class A( B ):\n\n    def f(self):\n        pass",
    ],
    "imports": [
        "import a, b\nfrom c import d, e as f\nfrom . import g",
        "from . import g\nfrom c import (\n    e as f,\n    d,\n)\nimport b\nimport a\n",
        "from c import d\nimport a, b\nfrom . import g\nfrom c import e as f",
    ],
    "imports in a function": [
        "def f():\n import a.b\n import a.c\n import d\n return a",
        "def f():\n import d\n import a.c, a.b\n\n return a",
    ],
    "a lambda": ["x = lambda a: a + 1", "x = (lambda a: (a + 1))", "x = lambda a : a+1"],
}
_OTHER = [
    *("x = 1", "x = 1.0", "x = True", "x = '1'", "x = b'1'", "x = 1j", "x = ..."),
    *("x = None", "x = 0", "x = 0.0", "x = -0.0", "x = False", "x = ''", "x = b''", "x = 'None'"),
    *("x = 'True'", "x = 'Ellipsis'", "x = 0j", "x = -0j", "x = 1e999", "x = 'inf'", "x = inf"),
    *("y = 1", "x: int = 1", "(x): int = 1", "x = y = 1", "x += 1", "x == 1", "x", "'x'", "b'x'"),
    *("f(a, b)", "f((a, b))", "f(a)(b)", "f(a=b)", "f(*a)", "f(**a)", "f(a, *b)", "f(*a, b)"),
    *("[a, b]", "{a, b}", "(a, b)", "{a: b}", "{**a}", "{None: a}", "{**a, b: c}", "{b: c, **a}"),
    *("def f(a, b=1): ...", "def f(a=1, b=1): ...", "def f(a, *, b=1): ...", "def f(a, /): ..."),
    *("def f(*, a, b=1): ...", "def f(*, a=1, b): ...", "def f(a): ...", "def f(*a): ..."),
    *("def f(a: int): ...", "def f(a) -> int: ...", "def f(a): return", "def f(a): return None"),
    *("async def f(a): ...", "@d\ndef f(a): ...", "@d\n@e\ndef f(a): ...", "@e\n@d\ndef f(a): ..."),
    *("def g(a): ...", "def f(b): ...", "def f(a):\n 'x'", "def f(a):\n b'x'", "def f(a):\n f'x'"),
    *("def f(a):\n 'x '\n ...", "def f(a):\n 'x\\n y'", "def f(a):\n ...\n 'x'"),
    *("def f(a):\n 'x\\u200b'", "def f(a):\n 'y'", "class f:\n 'x'", "lambda a: ...", "lambda: a"),
    *("f'{a}'", "f'{a!r}'", "f'{a!s}'", "f'{a:b}'", "f'{a:{b}}'", "f'{a}b'", "f'b{a}'", "'{a}'"),
    *("f'{a=}'", "f'{a = }'", "f'{{a}}'", "f''", "def f(a): return f''", "f'{a}{b}'"),
    *("a[b]", "a[b:]", "a[:b]", "a[::b]", "a[b, c]", "a[(b, c), d]", "a.b", "a.b.c", "a[*b]"),
    *("a < b < c", "(a < b) < c", "a < (b < c)", "a and b and c", "(a and b) and c", "not a"),
    *("a + b + c", "a + (b + c)", "-a", "+a", "~a", "a if b else c", "c if b else a"),
    *("import a", "import a as b", "from a import b", "from . import b", "from .. import b"),
    *("from .a import b", "from a import b as c", "from a import *", "import a.b", "import a, b"),
    *("import b as a", "from a import b; from c import b", "from c import b; from a import b"),
    *("import a; from b import a", "from b import a; import a", "import a; import b as a"),
    *("from a import *; from b import c", "from b import c; from a import *"),
    *("import b as a; import a", "import a; x; import b", "import b; x; import a"),
    *("for a in b: c", "for a in b:\n c\nelse:\n d", "while a: c", "with a: c", "with a as b: c"),
    *("with a, b: c", "with a:\n with b: c", "try: a\nexcept: b", "try: a\nfinally: b"),
    *("try: a\nexcept E: b", "try: a\nexcept E as e: b", "try: a\nexcept* E: b"),
    *("try: a\nexcept E: b\nelse: c", "raise a", "raise a from b", "raise", "assert a"),
    *("assert a, b", "del a", "del a, b", "global a", "global a, b", "nonlocal_ = a", "pass"),
    *("match a:\n case None: b", "match a:\n case True: b", "match a:\n case 1: b"),
    *("match a:\n case _: b", "match a:\n case x: b", "match a:\n case [x, *y]: b"),
    *(
        "match a:\n case {'k': v, **r}: b",
        "match a:\n case C(x, y=z): b",
        "match a:\n case x | y: b",
    ),
    *(
        "[a for b in c]",
        "[a for b in c if d]",
        "{a for b in c}",
        "(a for b in c)",
        "{a: b for b in c}",
    ),
    *(
        "[a for b in c for d in e]",
        "[a async for b in c]",
        "(yield)",
        "(yield a)",
        "(yield from a)",
    ),
    *(
        "(await a)",
        "(a := b)",
        "",
        "0x" + "f" * 5_000,
        "0x" + "f" * 5_001,
        "'\\ud800'",
        "'\\udfff'",
    ),
]


def _digest(source: str | bytes) -> str:
    syntax = read_syntax(source)
    assert syntax is not None, source
    return syntax.digest


@pytest.mark.parametrize("programs", _SAME.values(), ids=_SAME)
def test_how_a_program_is_written_does_not_count(programs: list[str]) -> None:
    """Each of these says the same."""
    assert len({_digest(program) for program in programs}) == 1


def test_what_a_program_says_counts() -> None:
    """No two of all these have one digest."""
    programs = [*_OTHER, *(each[0] for each in _SAME.values() if each[0] not in _OTHER)]
    found: dict[str, str] = {}
    for program in programs:
        same = found.setdefault(_digest(program), program)

        assert same == program
    assert len(found) == len(set(programs))


@pytest.mark.parametrize(
    "source",
    [
        *("(", "x = ", "\0", "x = 1\0", "if a:\nb", "9" * 5_000, "(" * 1_000 + ")" * 1_000),
        *("-" * 100_000 + "1", "a" + ".b" * 100_000, "a" + "+a" * 20_000, "lambda: " * 5_000 + "a"),
        *("a" + "[0]" * 1_000, "a" + ".b" * 500, b"\xff", b"# coding: nonsense\n", "\ud800"),
        "x = '" + "a" * (4 * 1024 * 1024) + "'",
        "\n".join([*(f"{' ' * n}if a:" for n in range(120)), " " * 120 + "b"]),
    ],
    ids=lambda source: repr(source[:12]),
)
def test_a_program_without_a_tree_is_none(source: str | bytes) -> None:
    """What does not parse, is nested too deeply or is too long is told, and never an error."""
    assert read_syntax(source) is None


def test_the_depth_that_is_read_does_not_depend_on_the_caller() -> None:
    """A tree that is just not too deep has one digest, also far down in a stack of calls."""
    source = "a" + ".b" * 490

    def called(levels: int) -> str:
        return _digest(source) if levels == 0 else called(levels - 1)

    assert called(300) == _digest(source)


def test_bytes_are_read_in_the_encoding_they_say() -> None:
    """A mark at the beginning or a comment says it, as for Python itself."""
    assert _digest("x = 'é'") == _digest("x = 'é'".encode())
    assert _digest("x = 'é'") == _digest(b"\xef\xbb\xbfx = '\xc3\xa9'")
    assert _digest("x = 'é'") == _digest(b"# coding: latin-1\nx = '\xe9'")
    assert _digest("x = 'é'") != _digest(b"# coding: cp1251\nx = '\xe9'")


def test_nothing_is_warned_of() -> None:
    """Python warned when it compiled the program; to read it again says nothing more."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")

        assert read_syntax("x = '\\d'; y = 1 is 1") is not None
    assert told == []


def test_threads_leave_the_warnings_as_they_were() -> None:
    """Many threads that read at once do not switch warnings off for the process."""
    before = warnings.filters[:]
    threads = [threading.Thread(target=read_syntax, args=("x = 1",)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert warnings.filters == before


_NESTED = """\
@first
@second(1)
def outer(a=lambda x: x):
    def inner():
        return [lambda: 1, lambda: 2]
    return inner


class Class:
    async def outer(self): ...
"""


def test_what_a_module_defines_is_told_by_name() -> None:
    """Functions, classes and methods have digests of their own, and a constant has none."""

    def told(*changes: tuple[str, str]) -> set[str]:
        text = _DEFINING
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        before, after = read_syntax(_DEFINING), read_syntax(text)
        assert before is not None
        assert after is not None
        names = before.definitions.keys() | after.definitions.keys()
        return {n for n in names if before.definitions.get(n) != after.definitions.get(n)}

    syntax = read_syntax(_DEFINING)

    assert syntax is not None
    assert set(syntax.definitions) == {
        *("Desk", "Desk.pay", "Desk.ask", "run", "twice"),
    }
    assert told(("import os\n", "import os\nimport sys\n")) == set()
    assert told(("# kept\n", "")) == set()
    assert told(("LIMIT = 5", "LIMIT = 500")) == set()
    assert told(("amount + 1", "amount + 2")) == {"Desk.pay"}
    assert told(("open = True", "open = False")) == {"Desk"}
    assert told(("class Desk(Base)", "class Desk(Other)")) == {"Desk"}
    assert told(("@cached\n", "")) == {"run"}
    assert told(("return lambda: 1", "return lambda: 2")) == {"run"}
    assert told(("return 2", "return 3")) == {"twice"}
    assert told(("def twice(x: str)", "def three(x: str)")) == {"twice", "three"}


_DEFINING = """\
import os
LIMIT = 5  # as agreed
# kept


class Desk(Base):
    open = True

    def pay(self, amount):
        return amount + 1

    async def ask(self): ...


@cached
def run():
    def inner():
        return lambda: 1
    return inner


def twice(x: int):
    return 1


def twice(x: str):
    return 2
"""


def test_everything_that_is_imported_is_found() -> None:
    """At the top, in functions and classes, by name, from a package above, or by a call."""
    syntax = read_syntax(
        "import a.b, c as d\nfrom e.f import g, h as i\nfrom .. import j\nfrom .k import *\n"
        "def f():\n import l\n return importlib.import_module('m.n'), __import__('o')\n"
        "class C:\n from p import q\n x = [importlib.import_module('.r', __package__)]\n"
        "importlib.import_module(name)\nif a: import s\nelse:\n try: import t\n finally: import u"
    )
    assert syntax is not None

    assert set(syntax.imports) == {
        *(Import("a.b"), Import("c"), Import("e.f", 0, ("g",)), Import("e.f", 0, ("h",))),
        *(Import("", 2, ("j",)), Import("k", 1, ("*",)), Import("l"), Import("m.n"), Import("o")),
        *(Import("p", 0, ("q",)), Import("r", 1), Import("s"), Import("t"), Import("u")),
    }


_NAMES = st.sampled_from(["a", "b", "ab", "", "("])


@given(st.lists(_NAMES, max_size=4), st.lists(_NAMES, max_size=4))
def test_nothing_moves_from_one_text_to_another(one: list[str], other: list[str]) -> None:
    """Lists of texts that differ anyhow have different digests."""
    assert (_digest(repr(one)) == _digest(repr(other))) == (one == other)


_FILES = sorted(Path(ast.__file__).parent.glob("[a-d]*.py"))[:24]


@pytest.mark.parametrize("path", _FILES[::4], ids=lambda path: path.name)
def test_formatting_whole_files_changes_nothing(path: Path) -> None:
    """Files of the standard library, written anew from their trees, have the same digest."""
    source = path.read_bytes()

    assert _digest(ast.unparse(ast.parse(source))) == _digest(source)


def test_digests_are_frozen() -> None:
    """The digest of a program is the same on every version of Python, today and later."""
    programs = (*itertools.chain.from_iterable(_SAME.values()), *_OTHER)
    found = hashlib.sha256("".join(map(_digest, programs)).encode()).hexdigest()

    assert _digest("") == "f92104cbc94cfe06152381edfc3c217f2344d1314551c6a6eba92595332709a4"
    assert found == "1618c9adb227614228dc47073183ef5cf7fe3327c613fcb2ea7e2d9c5ce694b4"


def _framed(data: bytes | str) -> bytes:
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return len(raw).to_bytes(8, "big") + raw


def _second(value: Any) -> bytes:
    """The encoding of the format page, written a second time and as plainly as can be."""
    match value:
        case ast.AST():
            return _second_node(value)
        case list():
            return b"[" + b"".join(map(_second, value)) + b"]"
        case str():
            return b"s" + _framed(value)
        case bytes():
            return b"b" + _framed(value)
        case None | bool():
            return b"v" + _framed(str(value))
        case int():
            return b"i" + _framed(f"{value:x}")
        case float():
            return b"f" + _framed(value.hex())
        case complex():
            return b"c" + _framed(value.real.hex()) + _framed(value.imag.hex())
        case _:
            return b"v" + _framed("Ellipsis")


def _second_node(node: ast.AST) -> bytes:
    made = b"(" + _framed(type(node).__name__)
    if isinstance(node, ast.Constant | ast.MatchSingleton):
        return made + _second(node.value) + b")"
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for name, value in sorted(ast.iter_fields(node)):
        if name in ("ctx", "kind", "type_comment", "type_ignores") or value in (None, []):
            continue
        if name == "format_spec" and not any(getattr(v, "value", 1) for v in value.values):
            continue
        made += _framed(name)
        if isinstance(node, ast.JoinedStr):
            texts = itertools.groupby(value, lambda each: isinstance(each, ast.Constant))
            parts = ["".join(e.value for e in each) if text else list(each) for text, each in texts]
            flat = [e for each in parts for e in (each if isinstance(each, list) else [each])]
            made += _second([each for each in flat if each != ""])
        elif (
            name == "body" and isinstance(node, documented) and ast.get_docstring(node) is not None
        ):
            first, rest = ast.get_docstring(node) or "", value[1:]
            text = "\n".join(line.rstrip(" ") for line in first.split("\n")).strip("\n")
            made += b"[D" + _framed(text) + _second(_second_imports(rest))[1:]
        else:
            is_body = name in ("body", "orelse", "finalbody") and isinstance(value, list)
            made += _second(_second_imports(value) if is_body else value)
    return made + b")"


def _second_imports(statements: list[Any]) -> list[Any]:
    """Runs of imports, each name a statement of its own, sorted where the order means nothing."""
    made: list[Any] = []
    for are_imports, run in itertools.groupby(
        statements, lambda each: isinstance(each, ast.Import | ast.ImportFrom)
    ):
        if not are_imports:
            made += run
            continue
        rows = []
        for each in run:
            for alias in each.names:
                level, module = getattr(each, "level", 0), getattr(each, "module", "") or ""
                rows.append((type(each).__name__, level, module, alias.name, alias.asname or ""))
        bound: dict[str, set[Any]] = {}
        for kind, level, module, name, asname in rows:
            whole = kind == "Import" and not asname
            first = name.partition(".")[0]
            source = first if whole else (level, module, name)
            bound.setdefault(asname or (first if whole else name), set()).add(source)
        if "*" not in bound and all(len(each) == 1 for each in bound.values()):
            rows.sort()
        for kind, level, module, name, asname in rows:
            names = [ast.alias(name=name, asname=asname or None)]
            made.append(
                ast.Import(names=names)
                if kind == "Import"
                else ast.ImportFrom(module=module or None, names=names, level=level)
            )
    return made


def test_the_format_page_says_it_all() -> None:
    """A second implementation, which reads nothing but the page, finds the same digests."""
    for program in (*itertools.chain.from_iterable(_SAME.values()), *_OTHER, _NESTED):
        encoded = b"\0sealpoint syntax 1\0" + _second(ast.parse(program))

        assert hashlib.sha256(encoded).hexdigest() == _digest(program), program


def test_another_process_finds_the_same() -> None:
    """Neither the seed of hashes nor an optimised interpreter matters."""
    program = (
        "import sys; from sealpoint.world import read_syntax; "
        "print(read_syntax(sys.argv[1]).digest)"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", program, _NESTED],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == _digest(_NESTED)
