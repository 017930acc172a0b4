# SPDX-License-Identifier: Apache-2.0
"""The page docs/reference/errors.md, made from the classes in `sealpoint.errors`.

`python -m tests.repo.errors` prints the page, and `--write` writes it. There must be no diff.

Each section has the docstring of a class, its hint, and links to pages that say more. A family is
a class directly below the root; it has the exit status of all classes below it.
"""

import argparse
import inspect
import re
from collections.abc import Iterator

from sealpoint import errors
from sealpoint.cli._doctor import FINDINGS_STATUS
from sealpoint.errors import SealpointError
from sealpoint_models.cli._scan import REFUSED_STATUS
from tests.repo._tree import REFERENCE

__all__ = ["PAGE", "error_classes", "page"]

PAGE = REFERENCE / "errors.md"

_READ_MORE: dict[type[SealpointError], tuple[str, ...]] = {
    errors.LimitInvalid: ("limits.md",),
    errors.UrlInvalid: ("settings.md#store-urls",),
    errors.WorldInvalid: ("worlds.md#declare-it-yourself",),
    errors.TypeNotAllowed: ("../guides/allow-your-types.md",),
    errors.EncodeLimitExceeded: ("limits.md",),
    errors.BytesMalformed: ("../formats/values.md",),
    errors.ShapeChanged: ("../guides/allow-your-types.md#change-a-class", "api.md#events"),
    errors.DecodeLimitExceeded: ("limits.md",),
    errors.Misplaced: ("../guides/backup-and-restore.md", "cli.md#sealpoint-accept-restore"),
    errors.RolledBack: (
        "../guides/backup-and-restore.md",
        "../guides/lost-anchor.md#start-over",
        "cli.md#sealpoint-roster-import",
        "postgresql.md#namespaces",
    ),
    errors.Forked: ("../guides/deployment.md#a-shared-anchor",),
    errors.Unanchored: ("../guides/lost-anchor.md#when-the-anchor-is-lost",),
    errors.ListIncomplete: ("postgresql.md#namespaces",),
    errors.NotTrusted: (
        "cli.md#sealpoint-trust-move",
        "../guides/revoke-a-key.md#threads-in-doubt",
    ),
    errors.NotOwner: ("cli.md#sealpoint-handoff",),
    errors.KeyNotInForce: ("../guides/keys-and-trust.md#rotate-a-key",),
    errors.Busy: ("../guides/resume-safely.md#one-answer-one-run",),
    errors.Moved: ("../guides/deploys-and-rollouts.md",),
    errors.Erased: ("../guides/retention.md#erase-a-thread",),
    errors.Pruned: ("../guides/retention.md#prune-a-thread",),
    errors.AnchorUnavailable: ("../guides/deployment.md#a-shared-anchor",),
    errors.SignerFailed: ("../guides/keys-elsewhere.md",),
    errors.ProviderUnavailable: ("../console/deployment.md#sign-in-with-openid-connect",),
    errors.ConfigError: ("settings.md",),
    errors.StoreMisplaced: ("settings.md#directories", "cli.md#sealpoint-trust-move"),
    errors.KeyFileUnsafe: ("../guides/revoke-a-key.md",),
    errors.KeyLocked: ("../guides/keys-and-trust.md#passphrases",),
    errors.StoreExists: ("cli.md#sealpoint-trust-move",),
    errors.PolicyInvalid: ("policy.md",),
    errors.ResumeRefused: ("../guides/resume-safely.md",),
    errors.Paused: ("restore.md#pauses-and-decisions-that-are-lost",),
    errors.NeedsApproval: ("../guides/resume-safely.md", "api.md#the-gate"),
    errors.FileRefused: (
        "../guides/from-filecheckpointstorage.md#refused-files",
        "limits.md#files-that-are-imported",
    ),
    errors.ModelError: ("../models/checkpoint-safety.md",),
    errors.FormatRefused: ("../models/from-torch-load.md#convert-old-files",),
    errors.ModelLimitExceeded: ("limits.md#model-files",),
    errors.GlobalNotAllowed: (
        "../models/from-torch-load.md#what-is-refused-and-what-to-do-then",
        "cli.md#sealpoint-model-inspect",
        "cli.md#sealpoint-model-convert",
    ),
    errors.FileNotSealed: ("cli.md#sealpoint-model-list",),
}

_SCRIPT = "A script "
"""The beginning of the paragraph of a family that says what a script does next."""

# Each sentence has a line of its own.
# ruff: noqa: E501
_FAMILIES = f"""\
<!-- Made from packages/sealpoint/src/sealpoint/errors.py: python -m tests.repo.errors --write -->

# Errors

Everything that Sealpoint raises on purpose is a `SealpointError`.
Each class has a **code** of its own, an **exit status**, which is that of its family, and a **hint**, which says what to do.
Codes and exit statuses are stable: a script branches on the exit status, and a program that needs the cause reads the code from `--json`.
A message about data names the thing, what was expected and what was found; a message about a decision or a call says what happened.
It never carries the payload or a key.

## Families

The classes of a family have one exit status, because a script does the same after each of them.
In Python, `except` with the class of the family catches all of them.
Two commands have an exit status of their own for findings: [`sealpoint doctor`](cli.md#sealpoint-doctor) exits with {FINDINGS_STATUS}, and [`sealpoint scan`](cli.md#sealpoint-scan) with {REFUSED_STATUS}.

"""

_IN_PYTHON = """
## In Python

`str(error)` is the message and, on a line of its own, the hint, so that logs and tracebacks have both; `error.message` is the message alone.
`KeyboardInterrupt` and `MemoryError` are never caught or renamed.
An exception of your own `put` or `get` passes through unchanged, except that a `KeyError` from `get` means a missing blob.

```python
from sealpoint import Registry, SealpointError

try:
    Registry().decode(b"\\xc1")
except SealpointError as error:
    for name, value in error.as_dict().items():
        print(f"{name:12} {value}")
```

```text
code         bytes-malformed
exit_status  20
message      value: not valid MessagePack: invalid type Reserved
hint         Do not use these bytes; find out who wrote them and with which registry.
```

"""


def error_classes(root: type[SealpointError] = SealpointError) -> Iterator[type[SealpointError]]:
    """Walk the tree in the order of the module, parents first."""
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:  # tests may add classes of their own
            yield from error_classes(child)


def _is_family(cls: type[SealpointError]) -> bool:
    return SealpointError in (cls, cls.__base__)


def _docstring(cls: type[SealpointError]) -> tuple[list[str], list[str]]:
    """The paragraphs of a docstring, and the attributes that it lists."""
    text, _, attributes = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")
    text = text.partition("Args:\n")[0]
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
    entries = re.findall(r"^    (\w+): (.*)$", attributes, re.MULTILINE)
    return paragraphs, [f"- `{name}`: {meaning}" for name, meaning in entries]


def _families() -> Iterator[str]:
    yield "| Exit status | Family | Meaning | Next |"
    yield "|---|---|---|---|"
    for cls in filter(_is_family, error_classes()):
        meaning, *more = _docstring(cls)[0]
        if cls is SealpointError:
            meaning = "Any other error."
        (script,) = (each for each in more if each.startswith(_SCRIPT))
        link = f"[`{cls.__name__}`](#{cls.code})"
        yield f"| {cls.exit_status} | {link} | {meaning} | {script} |"


def _tree(cls: type[SealpointError], first: str = "", below: str = "") -> Iterator[str]:
    status = f"{cls.exit_status:>3}" if _is_family(cls) else ""
    yield f"{first + cls.__name__:<32}{cls.code:<22}{status}".rstrip()
    children = [child for child in error_classes(cls) if child.__base__ is cls]
    for child in children:
        is_last = child is children[-1]
        yield from _tree(
            child, below + ("└── " if is_last else "├── "), below + ("    " if is_last else "│   ")
        )


def _link(target: str) -> str:
    """A link with the heading that it leads to as its text."""
    path, _, anchor = target.partition("#")
    text = (REFERENCE / path).read_text(encoding="utf-8")
    for heading in re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE):
        if not anchor or re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") == anchor:
            return f"[{heading}]({target})"
    raise KeyError(target)


def _section(cls: type[SealpointError]) -> Iterator[str]:
    (summary, *more), attributes = _docstring(cls)
    foreign = [base.__name__ for base in cls.__bases__ if not issubclass(base, SealpointError)]
    names = f"`{cls.__name__}`"
    if cls is not SealpointError:
        names += "".join(f", also a `{name}`" for name in foreign)
    yield f"{'##' if _is_family(cls) else '###'} `{cls.code}`"
    yield f"{names}, exit status {cls.exit_status}. {summary}"
    yield from more
    if attributes:
        yield "\n".join(attributes)
    yield f"*Hint:* {cls.hint}"
    if cls in _READ_MORE:
        yield f"*More:* {', '.join(map(_link, _READ_MORE[cls]))}"


def page() -> str:
    """The text of the page."""
    tree = "\n".join(["```text", *_tree(SealpointError), "```"])
    parts = [_FAMILIES + "\n".join(_families()) + "\n" + _IN_PYTHON + tree]
    for cls in error_classes():
        parts += _section(cls)
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.repo.errors", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")  # noqa: T201 -- it is a command


if __name__ == "__main__":
    main()
