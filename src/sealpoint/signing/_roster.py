# SPDX-License-Identifier: Apache-2.0
"""The roster: which identity may do what in which namespaces.

A roster is a whole document, never a difference, and is believed only as the body of a store
chain entry that the root signed. Empty means no: an identity without roles or namespaces may do
nothing. A key belongs to one identity, so that nobody counts twice.
"""

from datetime import datetime
from enum import StrEnum, unique

import msgspec

from sealpoint.errors import NotTrusted
from sealpoint.ids import KeyId
from sealpoint.signing._keys import PublicKey

__all__ = ["ANY_NAMESPACE", "Identity", "Pool", "Role", "Roster", "RosterDocument", "RosterKey"]

ANY_NAMESPACE = "*"
_SCHEME = "ed25519"


@unique
class Role(StrEnum):
    """What an identity may be trusted with."""

    APPROVER = "approver"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    PRIVACY = "privacy"
    WRITER = "writer"


class RosterKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A public key of an identity. The scheme decides the algorithm; data beside it never does."""

    scheme: str
    public: str
    expires: datetime | None = None


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named holder of keys, and the person behind it."""

    name: str
    person: str
    roles: tuple[Role, ...]
    namespaces: tuple[str, ...]
    keys: tuple[RosterKey, ...]
    break_glass: bool = False

    def may(self, role: Role, namespace: str) -> bool:
        """Whether this identity has a role in a namespace."""
        return role in self.roles and self.covers(namespace)

    def covers(self, namespace: str) -> bool:
        """Whether this identity belongs to a namespace at all."""
        return namespace in self.namespaces or ANY_NAMESPACE in self.namespaces


class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identities that own threads together, such as the pods of one service."""

    name: str
    members: tuple[str, ...]


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a key: a blob of the store chain lists its last accepted positions."""

    key: str
    positions: str


class RosterDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the root signs: every identity, and what is in force in each namespace."""

    identities: tuple[Identity, ...]
    pools: tuple[Pool, ...] = ()
    policies: dict[str, str] = {}
    restore_quorum: int = 0
    cuts: tuple[Cut, ...] = ()


class Roster:
    """A roster that has been checked, with its keys ready for use.

    Raises:
        NotTrusted: The document contradicts itself, or asks for what this version does not know.
    """

    __slots__ = ("_by_key", "_by_name", "_members", "document", "seq")

    def __init__(self, document: RosterDocument, *, seq: int) -> None:
        self.document = document
        self.seq = seq
        self._by_key: dict[KeyId, tuple[Identity, PublicKey]] = {}
        self._by_name: dict[str, Identity] = {}
        self._members = {pool.name: frozenset(pool.members) for pool in document.pools}
        for identity in document.identities:
            self._add(identity)
        if len(self._members) != len(document.pools) or self._members.keys() & self._by_name.keys():
            raise NotTrusted(f"roster {seq}: expected a name of its own for each pool")
        if not all(members <= self._by_name.keys() for members in self._members.values()):
            raise NotTrusted(f"roster {seq}: expected members of pools to be identities")
        if document.cuts or any(key.expires for each in document.identities for key in each.keys):
            # Ignoring the end of a key would let it go on: what is not yet enforced is refused.
            raise NotTrusted(
                f"roster {seq}: expected no cuts and no expiry, which this version does not know"
            )

    def _add(self, identity: Identity) -> None:
        if identity.name in self._by_name:
            raise NotTrusted(f"roster {self.seq}: expected identity {identity.name!r} once")
        if "" in identity.namespaces:
            # The store chain has no namespace: nobody is given it by an empty name.
            raise NotTrusted(f"roster {self.seq}: expected namespaces with names")
        self._by_name[identity.name] = identity
        for key in identity.keys:
            if key.scheme != _SCHEME:
                raise NotTrusted(
                    f"roster {self.seq}: expected scheme {_SCHEME}, found {key.scheme!r}"
                )
            public = PublicKey.parse(key.public)
            if public.id in self._by_key:
                raise NotTrusted(
                    f"roster {self.seq}: expected key {public.id.short()} with one identity"
                )
            self._by_key[public.id] = (identity, public)

    @property
    def identities(self) -> tuple[Identity, ...]:
        """Every identity, in the order of the document."""
        return self.document.identities

    def covers(self, earlier: "Roster") -> bool:
        """Whether every key may still do all that it might under an earlier roster."""
        for before in earlier.identities:
            now = self._by_name.get(before.name)
            if now is None or not (
                set(before.roles) <= set(now.roles)
                and before.break_glass <= now.break_glass
                and {key.public for key in before.keys} <= {key.public for key in now.keys}
                and all(map(now.covers, before.namespaces))
            ):
                return False
        return all(
            self._members.get(pool.name, frozenset()) >= set(pool.members)
            for pool in earlier.document.pools
        )

    def identity(self, name: str) -> Identity | None:
        """The identity of a name, or None."""
        return self._by_name.get(name)

    def holder(self, key: KeyId) -> tuple[Identity, PublicKey] | None:
        """Who holds a key, and the key itself; None if nobody does."""
        return self._by_key.get(key)

    def owns(self, identity: str, owner: str) -> bool:
        """Whether an identity is an owner, or a member of the pool that is."""
        return identity == owner or identity in self._members.get(owner, ())
