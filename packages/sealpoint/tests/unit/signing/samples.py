# SPDX-License-Identifier: Apache-2.0
"""Keys, a root and a pin that are the same in every run."""

from sealpoint.ids import StoreId
from sealpoint.signing import PrivateKey, Root, Seal, TrustPin

STORE = StoreId(bytes(range(16)))


def signer(number: int, name: str = "worker") -> PrivateKey:
    """The key whose secret is one byte repeated."""
    return PrivateKey(name, bytes([number]) * 32)


def seal(key: PrivateKey, message: bytes) -> Seal:
    """The key's seal on a message."""
    return Seal(key.public.id, key.sign(message))


def pin(roster: int = 3) -> TrustPin:
    """A pin with a root of two keys of three."""
    keys = [signer(number).public for number in (1, 2, 3)]
    root = Root(version=1, threshold=2, keys=keys)
    return TrustPin(store=STORE, root=root, roster_seq_min=roster)
