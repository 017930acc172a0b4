# SPDX-License-Identifier: Apache-2.0
"""Nothing in the sources can turn data into code, print, or read the environment.

Each ban is a question about one syntax node; the files it does not bind are named with it. The
second half plants what each ban forbids and sees it caught, so that a ban cannot go blind.
"""

import ast
import fnmatch
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.repo._tree import shown, source_files, source_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Ban:
    """One thing that the sources do not do, and where it applies."""

    name: str
    breaks: Callable[[ast.AST], bool]
    planted: tuple[str, ...]
    only_in: str = "packages/*/src/*"
    except_in: tuple[str, ...] = ()

    def binds(self, file: str) -> bool:
        """Tell whether the ban applies to a file."""
        if any(fnmatch.fnmatchcase(file, pattern) for pattern in self.except_in):
            return False
        return fnmatch.fnmatchcase(file, self.only_in)


def _imports(node: ast.AST, *modules: str) -> bool:
    """Tell whether a node imports one of the modules, something below it, or a part of it."""
    if isinstance(node, ast.Import):
        found = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        found = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    else:
        return False
    return any(
        name == module or name.startswith(f"{module}.") for name in found for module in modules
    )


def _uses(node: ast.AST, *names: str) -> bool:
    """Tell whether a node reads one of the plain or dotted names, called or not."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute) and any(name.endswith(f".{node.attr}") for name in names):
        return ast.unparse(node) in names
    return False


def _touches(node: ast.AST, *attributes: str) -> bool:
    """Tell whether a node defines or reads one of the attributes, of whatever object."""
    if isinstance(node, ast.Attribute):
        return node.attr in attributes
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name in attributes
    return isinstance(node, ast.Constant) and node.value in attributes


def _calls_with_computed_name(node: ast.AST) -> bool:
    """Tell whether a node looks up an attribute or a module whose name is not written there."""
    if _uses(node, "operator.attrgetter", "operator.methodcaller", "attrgetter", "methodcaller"):
        return True
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
        return not isinstance(node.slice, ast.Constant)
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called == "sys.modules.get":
        return not (node.args and isinstance(node.args[0], ast.Constant))
    if called in {"getattr", "hasattr"} or called.endswith(".__getattribute__"):
        return len(node.args) < 2 or not isinstance(node.args[1], ast.Constant)
    return False


def _passes_allow_pickle(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in {"allow_pickle", "weights_only"}


_FOREIGN_CODE = ("CDLL", "CFUNCTYPE", "PYFUNCTYPE", "PyDLL", "cdll", "pydll", "pythonapi")

BANS = (
    Ban(
        name="no serializer that runs code",
        breaks=lambda node: _imports(
            node,
            *("pickle", "_pickle", "marshal", "shelve", "copyreg"),
            *("dill", "cloudpickle", "joblib", "jsonpickle", "yaml"),
        ),
        planted=(
            "import pickle",
            "import pickle as p",
            "from pickle import loads",
            "import marshal",
            "import shelve",
            "def f():\n    import dill",
            "import cloudpickle.cloudpickle",
        ),
    ),
    Ban(
        name="no loader of arrays or tensors that may unpickle",
        breaks=lambda node: (
            _passes_allow_pickle(node)
            or _uses(node, "torch.load", "torch.save", "np.load", "numpy.load", "np.save")
        ),
        planted=("torch.load(f)", "x = np.load", "read(f, allow_pickle=False)"),
        except_in=(
            # Where it is proven that torch honours its flag, and where it is then called with it.
            "packages/sealpoint-models/src/sealpoint_models/_torch_files.py",
        ),
    ),
    Ban(
        name="no evaluation of text",
        breaks=lambda node: (
            _uses(node, "eval", "exec", "compile", "__import__", "__builtins__")
            or _imports(node, "builtins", "code", "codeop")
        ),
        planted=(
            "eval('1')",
            "exec('x = 1')",
            "compile('1', 'f', 'eval')",
            "__import__('os')",
            "run = eval",
            "from builtins import eval as e",
        ),
    ),
    Ban(
        name="no import by name",
        breaks=lambda node: (
            _imports(node, "importlib", "imp", "pkgutil", "runpy", "zipimport")
            or _touches(node, "import_module", "resolve_name")
            or _uses(node, "import_module", "importlib")
        ),
        planted=(
            "import importlib",
            "import importlib.util",
            "from importlib import import_module",
            "x.import_module('os')",
            "import pkgutil",
        ),
        except_in=(
            # Public names and verbs are loaded when they are used, from tables of our own.
            "packages/sealpoint/src/sealpoint/__init__.py",
            "packages/sealpoint/src/sealpoint/api/__init__.py",
            "packages/sealpoint/src/sealpoint/cli/_app.py",
            # What parts have registered in this environment, by a name that a person gives.
            "packages/sealpoint/src/sealpoint/_parts.py",
            # An object that the person at the command line names.
            "packages/sealpoint/src/sealpoint/cli/options.py",
            # It looks for a module where an import would find it, and imports nothing: what code
            # is declared in a world must not depend on a second, home-made way of looking.
            "packages/sealpoint/src/sealpoint/config/_code_identity.py",
            "packages/sealpoint/src/sealpoint/config/_installed_packages.py",
            # Which names of files are those of modules, and which calls import: it calls none.
            "packages/sealpoint/src/sealpoint/config/_application_code.py",
            "packages/sealpoint/src/sealpoint/world/_python_syntax.py",
        ),
    ),
    Ban(
        name="no hook of pickle's protocol",
        breaks=lambda node: _touches(
            node,
            *("__reduce__", "__reduce_ex__", "__setstate__", "__getstate__", "__getnewargs__"),
        ),
        planted=(
            "value.__setstate__(state)",
            "class A:\n    def __reduce__(self):\n        return A, ()",
            "getattr(value, '__reduce_ex__')",
        ),
        # It asks whether a class has such a hook, and refuses it then; it calls none.
        except_in=(
            "packages/sealpoint-agent-framework/src/sealpoint_agent_framework/_pickled_values.py",
        ),
    ),
    Ban(
        name="no attribute or module looked up by a computed name while decoding",
        breaks=_calls_with_computed_name,
        planted=(
            "getattr(module, name)",
            "getattr(module, name, None)",
            "hasattr(module, name)",
            "sys.modules[name]",
            "sys.modules.get(name)",
            "operator.attrgetter(name)",
        ),
        only_in="packages/sealpoint/src/sealpoint/codec/_decode*.py",
    ),
    Ban(
        name="no table of names while coding values",
        breaks=lambda node: (
            _uses(node, "globals", "locals", "vars") or _touches(node, "__globals__")
        ),
        planted=("globals()[name]", "locals()", "vars(module)[name]", "f.__globals__"),
        only_in="packages/sealpoint/src/sealpoint/codec/*",
    ),
    Ban(
        name="no process is started and no foreign code loaded",
        breaks=lambda node: (
            _imports(node, "subprocess", "multiprocessing", "pty")
            or _imports(node, *(f"ctypes.{name}" for name in _FOREIGN_CODE))
            or _touches(node, *_FOREIGN_CODE)
            or _uses(node, "os.system", "os.popen", "os.fork", "os.execv", "os.execve")
        ),
        planted=(
            "import subprocess",
            "os.system('ls')",
            "from ctypes import cdll",
            "ctypes.CDLL(name)",
            "ctypes.pythonapi.PyRun_SimpleString(text)",
        ),
        except_in=(
            # This Python, for signatures: nothing that somebody else names is run.
            "packages/sealpoint/src/sealpoint/signing/_signature_workers.py",
            # A command that the operator names in config.toml, which only its owner can write.
            "packages/sealpoint-console/src/sealpoint_console/_hook_delivery.py",
            # The command that a person, or a service manager, gives to `sealpoint openclaw run`.
            "packages/sealpoint-openclaw/src/sealpoint_openclaw/_gateway_process.py",
        ),
    ),
    Ban(
        name="no output but through the terminal module",
        breaks=lambda node: _uses(
            node,
            *("print", "sys.stdout", "sys.stderr", "click.echo", "click.secho", "rich.print"),
        ),
        planted=("print('x')", "sys.stderr.write('x')", "click.echo('x')", "p = print"),
        except_in=("packages/sealpoint/src/sealpoint/cli/terminal.py",),
    ),
    Ban(
        name="no reading of the environment outside config",
        breaks=lambda node: (
            _uses(node, "os.environ", "os.environb", "os.getenv", "os.putenv")
            or _imports(node, "os.environ", "os.environb", "os.getenv", "dotenv")
        ),
        planted=(
            "os.environ['HOME']",
            "os.getenv('HOME')",
            "from os import environ",
            "from os import getenv as g",
        ),
        except_in=(
            "packages/sealpoint/src/sealpoint/config.py",
            "packages/sealpoint/src/sealpoint/config/*",
            # Handed on to the gateway, without what is Sealpoint's own.
            "packages/sealpoint-openclaw/src/sealpoint_openclaw/_gateway_process.py",
        ),
    ),
)


# What a question can be about: no ban asks for anything else, and most nodes are something else.
_ASKED = (
    *(ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Import, ast.ImportFrom),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Constant, ast.keyword),
)


def _nodes(tree: ast.Module) -> list[tuple[int, ast.AST]]:
    """The nodes of a tree that a ban can be about, each with its line."""
    return [(node.lineno, node) for node in ast.walk(tree) if isinstance(node, _ASKED)]


def _violations(ban: Ban, nodes: list[tuple[int, ast.AST]]) -> list[int]:
    """The lines of the nodes that break a ban."""
    return [line for line, node in nodes if ban.breaks(node)]


def test_sources_keep_the_bans() -> None:
    """No source file that a ban binds does what it forbids."""
    broken = [
        f"{ban.name}: {shown(path)}:{line}"
        for path in source_files()
        for nodes in [_nodes(source_tree(path))]
        for ban in BANS
        if ban.binds(shown(path))
        for line in _violations(ban, nodes)
    ]

    assert not broken, "\n".join(broken)


def test_every_ban_binds_some_file() -> None:
    """No ban is about files that are not there."""
    files = [shown(path) for path in source_files()]

    assert not [ban.name for ban in BANS if not any(map(ban.binds, files))]


@pytest.mark.parametrize(
    ("ban", "snippet"),
    [
        pytest.param(ban, snippet, id=f"{ban.name}: {snippet}")
        for ban in BANS
        for snippet in ban.planted
    ],
)
def test_planted_violation_is_caught(ban: Ban, snippet: str) -> None:
    """What a ban forbids is found when it is there."""
    assert _violations(ban, _nodes(ast.parse(snippet)))


@pytest.mark.parametrize(
    "snippet",
    [
        "import re\npattern = re.compile('x')",
        "getattr(value, 'shape')",
        "import pickletools",
        "model.evaluate()",
        "from os import path",
        "sys.modules.get('numpy')",
        "blueprint = 'print'",
    ],
)
def test_harmless_code_is_not_caught(snippet: str) -> None:
    """Code that only looks like something banned is left alone."""
    nodes = _nodes(ast.parse(snippet))

    assert not [ban.name for ban in BANS if _violations(ban, nodes)]


def test_every_exception_is_one_named_file_or_package() -> None:
    """A ban is lifted for named places only, never by a pattern over the whole package."""
    lifted = [pattern for ban in BANS for pattern in ban.except_in]

    assert all(pattern.removesuffix("/*").count("*") == 0 for pattern in lifted)
    assert "packages/sealpoint/src/sealpoint/*" not in lifted
