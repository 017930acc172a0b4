# SPDX-License-Identifier: Apache-2.0
"""Bytes as an attacker writes them: MessagePack by hand, without asking the encoder."""

from sealpoint import Registry

INTERESTING_SIZES = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}


def extension(tag: int, payload: bytes) -> bytes:
    """An extension in its shortest form."""
    size = len(payload)
    if size in INTERESTING_SIZES:
        return bytes((INTERESTING_SIZES[size], tag & 0xFF)) + payload
    if size < 1 << 8:
        return bytes((0xC7, size, tag & 0xFF)) + payload
    if size < 1 << 16:
        return b"\xc8" + size.to_bytes(2, "big") + bytes((tag & 0xFF,)) + payload
    return b"\xc9" + size.to_bytes(4, "big") + bytes((tag & 0xFF,)) + payload


def array(*members: bytes) -> bytes:
    """An array of encoded members."""
    return b"\xdd" + len(members).to_bytes(4, "big") + b"".join(members)


def mapping(*parts: bytes) -> bytes:
    """A map of encoded keys and values in turn."""
    return b"\xdf" + (len(parts) // 2).to_bytes(4, "big") + b"".join(parts)


def text(value: str | bytes) -> bytes:
    """A text."""
    data = value.encode() if isinstance(value, str) else value
    return b"\xdb" + len(data).to_bytes(4, "big") + data


def binary(value: bytes) -> bytes:
    """A byte string."""
    return b"\xc6" + len(value).to_bytes(4, "big") + value


def flood(unit: bytes, size_bytes: int = 1_000_000) -> bytes:
    """An array of as many equal members as fit."""
    count = (size_bytes - 5) // len(unit)
    return b"\xdd" + count.to_bytes(4, "big") + unit * count


def nested(tag: int, payload: bytes, levels: int, wrap: bytes = b"\x91") -> bytes:
    """A payload inside so many extensions, each around an array of one."""
    for _ in range(levels):
        payload = extension(tag, wrap + payload)
    return payload


def head_of(registry: Registry, name: str) -> bytes:
    """The head of a rule: what opens the payload of its values."""
    return next(rule.label for rule in registry.rules if rule.name == name)


def typed(registry: Registry, name: str, body: bytes) -> bytes:
    """A typed value with a body of the attacker's choice."""
    return extension(1, head_of(registry, name) + body)
