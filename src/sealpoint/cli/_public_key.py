# SPDX-License-Identifier: Apache-2.0
"""`--public-key`: the digits of a public key, or a file as OpenSSL and key services write it."""

from collections.abc import Callable
from typing import Any

import click

from sealpoint.cli._json import read_document
from sealpoint.signing import PublicKey

__all__ = ["public_key_option"]

_DIGITS = 64
_FILE_BYTES_MAX = 4096


def public_key_option(
    text: str, name: str = "public", *, multiple: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--public-key HEX|FILE`; the verb is given the digits."""

    def read(_: click.Context, __: click.Parameter, value: Any) -> Any:
        if value is None or isinstance(value, tuple):
            return value if value is None else tuple(_digits(each) for each in value)
        return _digits(value)

    return click.option(
        "--public-key",
        name,
        metavar="HEX|FILE",
        multiple=multiple,
        callback=read,
        help=f"{text} Hexadecimal digits, or a file that holds them, PEM or DER.",
    )


def _digits(text: str) -> str:
    if len(text) == _DIGITS:
        return str(PublicKey.parse(text))
    return str(PublicKey.read(read_document(text, "--public-key", bytes_max=_FILE_BYTES_MAX)))
