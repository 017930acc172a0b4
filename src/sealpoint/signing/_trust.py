# SPDX-License-Identifier: Apache-2.0
"""The root and the pin: what a reader must know before it opens a store.

The root is a list of keys and how many of them must sign a roster. The pin names one store, its
first root, the newest root that is known, and the least roster that may be believed. It comes from
configuration or from the caller and is never learned from the store.
"""

from collections.abc import Iterable
from typing import Self

import msgspec

from sealpoint.errors import IdMalformed, NotTrusted, TrustFileInvalid
from sealpoint.ids import Digest, StoreId
from sealpoint.signing._keys import PublicKey, Seal

_PIN_VERSION = 1
_PIN_BYTES_MAX = 64 * 1024
_ROOT_KEYS_MAX = 16
_PIN_HINT = (
    "Write it once more on a machine that knows the store, and carry the file over unchanged: "
    "sealpoint trust export --output FILE."
)


class RootDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A root as it is written down: in a pin, and in the entry that makes it the next one."""

    version: int
    threshold: int
    keys: tuple[str, ...]


class _PinDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    v: int
    store: str
    root: RootDocument
    roster: int
    newest: RootDocument | None = None


_DECODER = msgspec.json.Decoder(_PinDocument)


class Root:
    """Keys of which `threshold` different ones must sign.

    Args:
        version: 1 for the first root of a store; each later one is one more.
        threshold: How many keys must sign.
        keys: The keys.

    Raises:
        NotTrusted: These cannot be a root: no key, a key twice, or a threshold out of reach.
    """

    __slots__ = ("_by_id", "keys", "threshold", "version")

    def __init__(self, *, version: int, threshold: int, keys: Iterable[PublicKey]) -> None:
        self.version = version
        self.threshold = threshold
        self.keys = tuple(keys)
        self._by_id = {key.id: key for key in self.keys}
        if version < 1:
            raise NotTrusted(f"root: expected version 1 or later, found {version}")
        if not 1 <= threshold <= len(self.keys) <= _ROOT_KEYS_MAX:
            raise NotTrusted(
                f"root: expected a threshold of 1 to {len(self.keys)} of at most "
                f"{_ROOT_KEYS_MAX} keys, found {threshold}"
            )
        if len(self._by_id) != len(self.keys):
            raise NotTrusted("root: one of the keys is given twice")

    @classmethod
    def parse(cls, document: RootDocument) -> Self:
        """Read what is written down.

        Raises:
            NotTrusted: It cannot be a root.
        """
        keys = [PublicKey.parse(key) for key in document.keys]
        return cls(version=document.version, threshold=document.threshold, keys=keys)

    @property
    def document(self) -> RootDocument:
        """The root as it is written down; two roots are the same if these are equal."""
        return RootDocument(self.version, self.threshold, tuple(str(key) for key in self.keys))

    def verify(self, message: bytes, seals: Iterable[Seal]) -> None:
        """Check that enough different root keys signed.

        Raises:
            NotTrusted: Too few of the keys signed.
            Forged: A seal names a root key that did not sign this message.
        """
        valid = set()
        for seal in seals:
            key = self._by_id.get(seal.key)
            if key is not None:
                key.verify(seal.signature, message)
                valid.add(key.id)
        if len(valid) < self.threshold:
            raise NotTrusted(
                f"root signatures: expected {self.threshold} of the keys of root {self.version}, "
                f"found {len(valid)}"
            )


class TrustPin:
    """The store, its root, and the least roster sequence that may be believed.

    Args:
        store: The store.
        root: The first root, from which its store chain is verified.
        roster_seq_min: The least position that the newest roster may have.
        newest: A later root that the store chain must have come to; None if none is known.

    Raises:
        NotTrusted: These cannot be a pin.
    """

    __slots__ = ("newest", "root", "roster_seq_min", "store")

    def __init__(
        self, *, store: StoreId, root: Root, roster_seq_min: int = 0, newest: Root | None = None
    ) -> None:
        self.store = store
        self.root = root
        self.roster_seq_min = roster_seq_min
        self.newest = newest
        if roster_seq_min < 0:
            raise NotTrusted(
                f"pin: expected a roster sequence of 0 or more, found {roster_seq_min}"
            )
        if newest is not None and newest.version <= root.version:
            raise NotTrusted(
                f"pin: expected a newest root after version {root.version}, found version "
                f"{newest.version}"
            )

    def encode(self) -> bytes:
        """The pin as a JSON document that people can read and pass on; it holds no secret."""
        document = _PinDocument(
            _PIN_VERSION,
            str(self.store),
            self.root.document,
            self.roster_seq_min,
            None if self.newest is None else self.newest.document,
        )
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read what `encode` wrote.

        Raises:
            TrustFileInvalid: It is not a pin.
        """
        if len(data) > _PIN_BYTES_MAX:
            raise TrustFileInvalid(
                f"pin: expected at most {_PIN_BYTES_MAX} bytes, found {len(data)}", hint=_PIN_HINT
            )
        try:
            document = _DECODER.decode(data)
            store = StoreId.parse(document.store)
        except (msgspec.MsgspecError, ValueError, RecursionError, IdMalformed) as exc:
            raise TrustFileInvalid(
                f"pin: expected a pin as JSON, found {len(data)} bytes that are not one",
                hint=_PIN_HINT,
            ) from exc
        if document.v != _PIN_VERSION:
            raise TrustFileInvalid(
                f"pin: expected version {_PIN_VERSION}, found {document.v}",
                hint="Install the Sealpoint version that wrote the pin, or a newer one.",
            )
        newest = None if document.newest is None else Root.parse(document.newest)
        pin = cls(
            store=store,
            root=Root.parse(document.root),
            roster_seq_min=document.roster,
            newest=newest,
        )
        if pin.encode() != data:
            raise TrustFileInvalid(
                "pin: expected it byte for byte as sealpoint trust export writes it, found other "
                "spacing, order or spelling",
                hint=_PIN_HINT,
            )
        return pin

    def fingerprint(self) -> Digest:
        """A digest of store and first root for two people to compare; nothing later changes it."""
        keys = ",".join(str(key) for key in self.root.keys)
        text = f"{self.store} {self.root.version} {self.root.threshold} {keys}"
        return Digest.of(text.encode())

    def with_roster(self, seq: int) -> "TrustPin":
        """The same pin that believes no roster below `seq`."""
        return TrustPin(store=self.store, root=self.root, roster_seq_min=seq, newest=self.newest)

    def with_root(self, newest: Root) -> "TrustPin":
        """The same pin that believes no store chain which has not come to this root."""
        return TrustPin(
            store=self.store,
            root=self.root,
            roster_seq_min=self.roster_seq_min,
            newest=None if newest.document == self.root.document else newest,
        )
