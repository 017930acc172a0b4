# SPDX-License-Identifier: Apache-2.0
"""Changing a case so that it stays close to the format, or strays from it in a chosen way.

Most changes are made to tokens, and lengths are then written right again; some write them wrong on
purpose, and some change plain bytes. Trees get their totals and counts corrected now and then, so
that changed chunks are read and not only refused for their length.
"""

import random
import struct
from collections.abc import Callable, Sequence
from itertools import islice
from operator import is_

from fuzz._dictionary import ATOMS, INTEGERS, NESTING_TAGS, PAYLOADS, TAGS, TEXTS, integer, text
from fuzz._tokens import REFERENCE_BYTES, Kind, Token, atom, header, parse, replaced, walked
from fuzz.decode_never_executes import (
    IS_PLANTED,
    IS_RETREED,
    IS_TREE,
    IS_VERIFIED,
    Case,
)

__all__ = ["Mutator"]


class Mutator:
    """Makes new cases from old ones.

    Args:
        rng: Where all choices come from.
        labels: Heads of typed values to put in place of others.
    """

    def __init__(self, rng: random.Random, labels: Sequence[bytes]) -> None:
        self._rng = rng
        self._heads = tuple(labels)
        self._pool: list[Token] = [atom(raw) for raw in ATOMS]
        self._token_changes: tuple[Callable[[Token], Sequence[Token]], ...] = (
            *(
                self._spliced,
                self._spliced,
                self._spliced,
                self._with_neighbour,
                self._with_neighbour,
            ),
            *(
                self._without,
                self._twice,
                self._wrapped,
                self._wrapped,
                self._unwrapped,
                self._nested,
            ),
            *(self._rearranged, self._rearranged, self._many, self._lying, self._widened),
            *(self._other_tag, self._other_atom, self._other_atom, self._other_prefix),
            *(self._other_prefix, self._other_prefix),
        )

    def learn(self, root: Token) -> None:
        """Take the tokens of a good case into the pool that others are spliced from."""
        for token in islice(walked(root), 1, 40):
            if len(token.raw) > 2000:
                continue
            if len(self._pool) < 6000:
                self._pool.append(token)
            else:
                self._pool[self._rng.randrange(len(ATOMS), len(self._pool))] = token

    def changed(self, selector: int, roots: Sequence[tuple[bytes, Token]]) -> Case:
        """A new case from the tokens of an old one: one root if it is flat, one per blob if not."""
        rng = self._rng
        if rng.random() < 0.8:
            selector &= ~(IS_PLANTED | IS_RETREED)  # the two that take longest
        if rng.random() < 0.1:
            selector ^= rng.choice((1, 2, 3, IS_VERIFIED, IS_PLANTED, IS_RETREED))
        if not selector & IS_TREE:
            root = roots[0][1]
            data = self._bytes(root.raw) if rng.random() < 0.12 else self._tokens(root).raw
            return Case(selector=selector, data=data)
        blobs = list(roots)
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._change_blobs(blobs)
        if rng.random() < 0.7:
            self._correct(blobs)
        return Case(selector=selector, blobs=tuple((name, root.raw) for name, root in blobs))

    # Whole inputs.

    def _tokens(self, root: Token) -> Token:
        rng = self._rng
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
            if root.size == 1:
                root = root.having([rng.choice(self._pool)])
            number = rng.randrange(1, root.size)
            change = rng.choice(self._token_changes)
            root = replaced(root, number, change)
        return root

    def _bytes(self, raw: bytes) -> bytes:
        rng = self._rng
        data = bytearray(raw)
        for _ in range(rng.choice((1, 1, 2, 4))):
            place = rng.randrange(len(data) + 1)
            match rng.randrange(7):
                case 0 if data:
                    data[place % len(data)] ^= 1 << rng.randrange(8)
                case 1 if data:
                    data[place % len(data)] = rng.randrange(256)
                case 2:
                    data[place:place] = rng.randbytes(rng.choice((1, 1, 2, 4, 8)))
                case 3:
                    del data[place : place + rng.choice((1, 1, 2, 4, 16))]
                case 4:
                    data[place:place] = data[place : place + rng.randrange(32)]
                case 5:
                    del data[place:]
                case _:
                    data += rng.choice(self._pool).raw
        return bytes(data)

    # One token.

    def _spliced(self, token: Token) -> Sequence[Token]:  # noqa: ARG002 - as the others
        return (self._rng.choice(self._pool),)

    def _with_neighbour(self, token: Token) -> Sequence[Token]:
        other = self._rng.choice(self._pool)
        return (token, other) if self._rng.random() < 0.5 else (other, token)

    def _without(self, token: Token) -> Sequence[Token]:  # noqa: ARG002
        return ()

    def _twice(self, token: Token) -> Sequence[Token]:
        return (token, token)

    def _many(self, token: Token) -> Sequence[Token]:
        """As many that a bound is met; numbers in a row, or times a prime that hashes wrap at."""
        count = self._rng.choice((3, 4, 17, 18, 40))
        match self._rng.randrange(4):
            case 0:
                return tuple(atom(integer(number)) for number in range(count))
            case 1:
                step = (1 << 61) - 1
                return tuple(atom(integer(number * step % (1 << 64))) for number in range(count))
            case _:
                return (token,) * count if len(token.raw) < 200 else (token, token)

    def _wrapped(self, token: Token) -> Sequence[Token]:
        rng = self._rng
        kind = rng.choice((Kind.ARRAY, Kind.MAP, Kind.EXTENSION, Kind.EXTENSION, Kind.EXTENSION))
        if kind is Kind.MAP:
            return (Token(kind, 0, b"", (atom(text(rng.choice(TEXTS))), token)),)
        if kind is Kind.EXTENSION:
            return (self._in_extension(token),)
        return (Token(kind, 0, b"", (token,) * rng.choice((1, 1, 2, 3))),)

    def _in_extension(self, token: Token) -> Token:
        rng = self._rng
        if rng.random() < 0.3:
            fields = Token(Kind.MAP, 0, b"", (atom(b"\xa1a"), token))
            body = rng.choice((fields, token))
            head = rng.choice(self._heads)
            rest = rng.choice(((), (atom(b"\x01"), atom(b"\xc0"), atom(b"\xc0"))))
            return Token(Kind.EXTENSION, 1, head, (Token(Kind.ARRAY, 0, b"", (body, *rest)),))
        tag = rng.choice(NESTING_TAGS)
        prefix = bytes((rng.randrange(14),)) if tag == 21 else b""
        members = rng.choice(
            ((token,), (token, token), (atom(b"\x01"), token), (token, atom(b"\x02")))
        )
        inner = (Token(Kind.ARRAY, 0, b"", members),) if rng.random() < 0.8 else members
        return Token(Kind.EXTENSION, tag, prefix, inner)

    def _nested(self, token: Token) -> Sequence[Token]:
        """Many levels of one container."""
        times = self._rng.choice((3, 5, 8, 31, 34))
        tag = self._rng.choice(NESTING_TAGS)
        is_plain = self._rng.random() < 0.5
        if len(token.raw) > 200:
            return (token,)
        for _ in range(times):
            token = Token(Kind.ARRAY, 0, b"", (token,))
            if not is_plain:
                token = Token(Kind.EXTENSION, tag, b"\x01" if tag == 21 else b"", (token,))
        return (token,)

    def _unwrapped(self, token: Token) -> Sequence[Token]:
        return token.members or (token,)

    def _rearranged(self, token: Token) -> Sequence[Token]:
        rng = self._rng
        members = list(token.members)
        if not members:
            return self._other_atom(token)
        match rng.randrange(5):
            case 0:
                rng.shuffle(members)
            case 1:
                members.append(rng.choice(members))
            case 2:
                del members[rng.randrange(len(members))]
            case 3:
                members.insert(rng.randrange(len(members) + 1), rng.choice(self._pool))
            case _:
                place = rng.randrange(len(members))
                members[place] = rng.choice(self._pool)
        return (token.having(members),)

    def _lying(self, token: Token) -> Sequence[Token]:
        """A header that says more or less than there is."""
        if token.kind <= Kind.AS_IS:
            return self._other_atom(token)
        off = self._rng.choice((-1, 1, 1, 2, 16, -2, 255, 65536, (1 << 32) - 40))
        body = token.prefix + b"".join([member.raw for member in token.members])
        first = header(token.kind, token.tag, token.members, len(body), off=off)
        return (Token(Kind.AS_IS, 0, first + token.prefix, token.members),)

    def _widened(self, token: Token) -> Sequence[Token]:
        """A header that is right and longer than it need be."""
        body = token.prefix + b"".join([member.raw for member in token.members])
        match token.kind:
            case Kind.ARRAY:
                first = b"\xdd" + len(token.members).to_bytes(4, "big")
            case Kind.MAP:
                first = b"\xdf" + (len(token.members) // 2).to_bytes(4, "big")
            case Kind.EXTENSION:
                first = b"\xc9" + len(body).to_bytes(4, "big") + bytes((token.tag,))
            case _:
                if token.raw[:1] and token.raw[0] < 128:
                    return (atom(b"\xcf" + token.raw[0].to_bytes(8, "big")),)
                return self._other_atom(token)
        return (Token(Kind.AS_IS, 0, first + token.prefix, token.members),)

    def _other_tag(self, token: Token) -> Sequence[Token]:
        if token.kind is not Kind.EXTENSION:
            return self._wrapped(token)
        tag = self._rng.choice(TAGS)
        return (Token(Kind.EXTENSION, tag, token.prefix, token.members),)

    def _other_atom(self, token: Token) -> Sequence[Token]:
        rng = self._rng
        raw = token.raw
        if token.kind is Kind.ATOM and raw and (0xA0 <= raw[0] <= 0xBF) and rng.random() < 0.5:
            return (atom(text(self._bytes(raw[1:])[:60])),)
        if token.kind is Kind.ATOM and raw[:1] == b"\xc4" and rng.random() < 0.6:
            data = self._bytes(raw[2:])[:250]
            return (atom(b"\xc4" + bytes((len(data),)) + data),)
        match rng.randrange(4):
            case 0:
                return (atom(rng.choice(ATOMS)),)
            case 1:
                return (atom(text(rng.choice(TEXTS))),)
            case _:
                return (atom(integer(rng.choice(INTEGERS))),)

    def _other_prefix(self, token: Token) -> Sequence[Token]:
        """Another head, factory code, or payload of a type that holds no values."""
        rng = self._rng
        if token.kind is not Kind.EXTENSION or not token.prefix:
            return self._rearranged(token)
        prefix = token.prefix
        if token.tag == 1 and rng.random() < 0.6:
            prefix = rng.choice(self._heads)
        elif token.tag == 2 and len(prefix) >= REFERENCE_BYTES and rng.random() < 0.9:
            prefix = self._other_reference(prefix)
        elif token.tag in PAYLOADS and rng.random() < 0.5:
            prefix = rng.choice(PAYLOADS[token.tag])
        elif token.tag in (10, 12) and rng.random() < 0.5:
            prefix = prefix[: 11 if token.tag == 10 else 7] + rng.choice(PAYLOADS[24])
        else:
            prefix = self._bytes(prefix)
        return (Token(Kind.EXTENSION, token.tag, prefix, token.members),)

    # Trees.

    def _other_reference(self, prefix: bytes) -> bytes:
        rng = self._rng
        stream, levels, count, total = struct.unpack(">BBIQ", prefix[:REFERENCE_BYTES])
        ids = [prefix[place : place + 32] for place in range(REFERENCE_BYTES, len(prefix), 32)]
        match rng.randrange(7):
            case 0:
                stream = rng.choice((0, 1, 2, 3, 4, 5, 255))
            case 1:
                levels = rng.choice((0, 1, 2, 3, 13, 255))
            case 2:
                count = rng.choice((0, 1, count + 1, max(count - 1, 0), (1 << 32) - 1))
            case 3:
                total = rng.choice((0, total + 1, max(total - 1, 0), 1 << 31, (1 << 64) - 1))
            case 4:
                rng.shuffle(ids)
            case 5:
                ids += ids[-1:] * rng.choice((1, 2, 9))
            case _:
                ids = ids[:-1]
        count, total = count % (1 << 32), total % (1 << 64)
        return struct.pack(">BBIQ", stream, levels, count, total) + b"".join(ids)

    def _change_blobs(self, blobs: list[tuple[bytes, Token]]) -> None:
        rng = self._rng
        if not blobs:
            blobs.append((rng.randbytes(32), rng.choice(self._pool)))
            return
        place = rng.randrange(len(blobs)) if rng.random() < 0.5 else 0
        name, root = blobs[place]
        match rng.randrange(12):
            case 0:
                del blobs[place]
            case 1:
                blobs[place] = (rng.choice(blobs)[0], root)
            case 2:
                blobs[place] = (name, rng.choice(blobs)[1])
            case 3:
                blobs[place] = (name, parse(self._bytes(root.raw)))
            case 4:
                self._refer(blobs, place)
            case _:
                blobs[place] = (name, self._tokens(root))

    def _refer(self, blobs: list[tuple[bytes, Token]], place: int) -> None:
        """Put a reference to some blob in place of some token."""
        rng = self._rng
        name, root = blobs[place]
        target = rng.choice(blobs)[0]
        fixed = struct.pack(">BBIQ", rng.choice((1, 1, 2, 2, 3, 4, 0)), rng.choice((0, 0, 1)), 1, 1)
        reference = Token(Kind.EXTENSION, 2, fixed + target)
        if root.size > 1:
            number = rng.randrange(1, root.size)
            blobs[place] = (name, replaced(root, number, lambda _: (reference,)))

    def _correct(self, blobs: list[tuple[bytes, Token]]) -> None:
        """Write right totals and, mostly, right counts into the references of all blobs."""
        table = dict(reversed(blobs))
        counts = self._rng.random() < 0.8

        def correct(token: Token) -> Token:
            if token.tag == 2 and len(token.prefix) >= REFERENCE_BYTES:
                return Token(Kind.EXTENSION, 2, _corrected(token.prefix, table, counts=counts))
            members = [
                correct(member) if member.size > 1 or member.tag else member
                for member in token.members
            ]
            return token if all(map(is_, members, token.members)) else token.having(members)

        for place in reversed(range(len(blobs))):
            name, root = blobs[place]
            if root.size <= 600:
                table[name] = root = correct(root)
                blobs[place] = (name, root)


def _corrected(prefix: bytes, table: dict[bytes, Token], *, counts: bool) -> bytes:
    stream, levels, count, total = struct.unpack(">BBIQ", prefix[:REFERENCE_BYTES])
    data = prefix[REFERENCE_BYTES:]
    for level in range(min(levels, 3) + 1):
        ids = [data[place : place + 32] for place in range(0, len(data), 32)]
        parts = [table[name] for name in ids[:300] if name in table]
        data = b"".join([part.raw for part in parts])[:100_000]
        if level == min(levels, 3):
            total = len(data)
            if counts and stream in (1, 2):
                count = sum(len(part.members) for part in parts) // stream
    return struct.pack(">BBIQ", stream, levels, count % (1 << 32), total) + prefix[REFERENCE_BYTES:]
