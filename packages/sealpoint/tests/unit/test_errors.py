# SPDX-License-Identifier: Apache-2.0
"""The exception tree: its families, codes, hints and texts."""

import json
import logging
import re
import traceback
from typing import Any

import pytest

import sealpoint
from sealpoint import errors
from sealpoint.errors import DecodeError, NeedsApproval, SealpointError, TypeNotAllowed

_CLASSES: list[type[SealpointError]] = [getattr(errors, name) for name in errors.__all__]
_every_class = pytest.mark.parametrize("cls", _CLASSES, ids=lambda cls: cls.__name__)


def _made(cls: type[SealpointError], message: str, **options: Any) -> SealpointError:
    """An error, with whatever else its class asks for."""
    return cls(message, **(options | ({"request": None} if cls is NeedsApproval else {})))


def test_every_family_has_an_exit_status_and_its_classes_inherit_it() -> None:
    """The classes directly below the root define a status each, and no class below them does."""
    families = [cls for cls in _CLASSES if SealpointError in (cls, cls.__base__)]
    statuses = [cls.exit_status for cls in families]

    assert len(set(statuses)) == len(statuses)
    assert all(1 <= status < 126 for status in statuses)
    assert {cls for cls in _CLASSES if "exit_status" in vars(cls)} == set(families)


def test_every_error_is_listed() -> None:
    """There is no error class outside of `__all__`."""
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }

    assert defined == set(errors.__all__)


def test_codes_are_unique() -> None:
    """No two classes share a code."""
    codes = [cls.code for cls in _CLASSES]

    assert len(set(codes)) == len(codes)


@_every_class
def test_an_error_has_a_code_a_hint_and_a_docstring(cls: type[SealpointError]) -> None:
    """Codes are lower-case words, hints and docstrings sentences."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", cls.code)
    assert cls.hint.endswith((".", ")"))
    assert cls.__doc__ is not None
    assert cls.__doc__.splitlines()[0].endswith(".")


@_every_class
def test_an_error_says_its_message_and_its_json_form(cls: type[SealpointError]) -> None:
    """`message` is the message, `str` has the hint too; the JSON form has both and the codes."""
    error = _made(cls, "thing: expected a, found b")
    hinted = _made(cls, "thing", hint="Do this.")

    assert error.message == "thing: expected a, found b"
    assert str(error) == f"thing: expected a, found b\nhint: {cls.hint}"
    assert error.as_dict() == {
        "code": cls.code,
        "exit_status": cls.exit_status,
        "message": "thing: expected a, found b",
        "hint": cls.hint,
    }
    assert json.loads(json.dumps(error.as_dict())) == error.as_dict()
    assert hinted.hint == "Do this."
    assert cls.hint != "Do this."


@_every_class
def test_a_traceback_shows_the_hint(cls: type[SealpointError]) -> None:
    """The hint is there once, and the class is named by the address that users import."""
    for error in (_made(cls, "thing"), _made(cls, "thing", hint="Do this.")):
        shown = "".join(traceback.format_exception(error))

        assert shown == f"sealpoint.errors.{cls.__name__}: thing\nhint: {error.hint}\n"


@_every_class
def test_a_log_line_carries_the_hint(
    cls: type[SealpointError], caplog: pytest.LogCaptureFixture
) -> None:
    """What a service logs of an error with `%s` says what to do."""
    error = _made(cls, "thing")

    logging.getLogger("service").error("it failed: %s", error)

    assert caplog.messages == [f"it failed: thing\nhint: {error.hint}"]


def test_a_decode_error_names_the_types_around_the_fault() -> None:
    """The types that the fault lay inside follow the message, innermost first."""
    error = DecodeError("int: expected a number")
    error.within += ["app.step", "app.plan"]

    assert error.message == "int: expected a number, inside app.step, inside app.plan"
    assert error.as_dict()["message"] == error.message
    assert str(error).startswith(error.message)


def test_the_root_is_importable_from_the_package() -> None:
    """`sealpoint.SealpointError` catches everything."""
    assert sealpoint.SealpointError is SealpointError
    with pytest.raises(sealpoint.SealpointError):
        raise TypeNotAllowed("x")


def test_errors_never_hide_interrupts() -> None:
    """The tree hangs under Exception, so that interrupts pass by every handler of it."""
    assert SealpointError.__bases__ == (Exception,)
