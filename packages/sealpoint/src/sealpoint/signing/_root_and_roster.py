# SPDX-License-Identifier: Apache-2.0
"""The basis of a reader's trust: the root, the pin that names it, and the roster that it signed.

The root is a list of keys and the number of keys that must sign a roster. The pin names one store,
its first root, the newest known root, and the oldest roster to accept. It comes from configuration
or from the caller and is never learned from the store.

The roster states what each identity may do in which namespaces. It is always a complete document,
never a difference, and is trusted only as the body of a store chain entry that the root signed.
Empty means no: an identity without roles or namespaces may do nothing. A key belongs to one
identity, so that no one counts twice. A passkey is only for attestations: lookups of keys that may
sign an entry, a roster or a bundle do not find it. A key with a cutoff is at its end: no one holds
it, and the cutoff is never removed.
"""

import functools
import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum, unique
from typing import Self

import msgspec

from sealpoint.errors import IdMalformed, NotTrusted, TrustFileInvalid
from sealpoint.ids import Digest, KeyId, StoreId
from sealpoint.signing._keys import PublicKey
from sealpoint.signing._passkey import WEBAUTHN, Passkey, PasskeyBinding
from sealpoint.signing._seals import Seal

_PIN_VERSION = 1
_PIN_BYTES_MAX = 64 * 1024
_ROOT_KEYS_MAX = 16
_PIN_HINT = (
    "Write it once more on a machine that knows the store, and carry the file over unchanged: "
    "sealpoint trust export --output FILE."
)


class RootDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The serialized form of a root: in a pin, and in the entry that makes it the next root."""

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
    """Keys, of which `threshold` different ones must sign.

    Args:
        version: 1 for the first root of a store; each later one adds one.
        threshold: How many keys must sign.
        keys: The keys.

    Raises:
        NotTrusted: These cannot be a root: no key, a key twice, or an unreachable threshold.
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
        """Read the serialized form.

        Raises:
            NotTrusted: It cannot be a root.
        """
        keys = [PublicKey.parse(key) for key in document.keys]
        return cls(version=document.version, threshold=document.threshold, keys=keys)

    @property
    def document(self) -> RootDocument:
        """The serialized form of the root; two roots are the same if these are equal."""
        return RootDocument(self.version, self.threshold, tuple(str(key) for key in self.keys))

    def verify(self, message: bytes, seals: Iterable[Seal]) -> None:
        """Verify that enough different root keys signed.

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
    """The store, its root, and the lowest roster sequence number to accept.

    Args:
        store: The store.
        root: The first root, from which its store chain is verified.
        roster_seq_min: The lowest position that the newest roster may have.
        newest: A later root that the store chain must have reached; None if none is known.

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
        """Encode the pin as JSON that people can read and pass on; it holds no secret."""
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
        """Read the output of `encode`.

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
        """Return a digest of store and first root for two people to compare; it never changes."""
        keys = ",".join(str(key) for key in self.root.keys)
        text = f"{self.store} {self.root.version} {self.root.threshold} {keys}"
        return Digest.of(text.encode())

    def with_roster(self, seq: int) -> "TrustPin":
        """Return the same pin, but accept no roster below `seq`."""
        return TrustPin(store=self.store, root=self.root, roster_seq_min=seq, newest=self.newest)

    def with_root(self, newest: Root) -> "TrustPin":
        """Return the same pin, but accept no store chain that has not reached this root."""
        return TrustPin(
            store=self.store,
            root=self.root,
            roster_seq_min=self.roster_seq_min,
            newest=None if newest.document == self.root.document else newest,
        )


ANY_NAMESPACE = "*"
STOPPED = datetime(1970, 1, 1, tzinfo=UTC)
"""The expiry of a key that is being ended, until its cutoff exists: past by every clock."""

_SCHEME = PublicKey.scheme
_DIGEST = re.compile("[0-9a-f]{64}")


@unique
class Role(StrEnum):
    """The roles that an identity can have."""

    APPROVER = "approver"
    AUDITOR = "auditor"
    OPERATOR = "operator"
    PRIVACY = "privacy"
    WRITER = "writer"


@functools.lru_cache(maxsize=1024)
def _public_key(text: str) -> PublicKey:
    """Read a key once: every roster of a store chain names most keys of the one before."""
    return PublicKey.parse(text)


class RosterKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A public key of an identity. Only its scheme decides the algorithm, never other data."""

    scheme: str
    public: str
    expires: datetime | None = None
    """The time from which it can write nothing, in UTC. The newest roster decides."""
    passkey: PasskeyBinding | msgspec.UnsetType = msgspec.UNSET
    """Only for a passkey: the context in which it counts."""

    @classmethod
    def of(cls, key: PublicKey | Passkey, expires: datetime | None = None) -> Self:
        """Make the roster form of a key."""
        if isinstance(key, Passkey):
            return cls(WEBAUTHN, key.public, expires, key.binding)
        return cls(_SCHEME, str(key), expires)

    @property
    def digits(self) -> str:
        """The digits of its id, which entries and attestations use."""
        return self.key.id.raw.hex()

    @property
    def key(self) -> PublicKey | Passkey:
        """The key itself, ready to verify.

        Raises:
            NotTrusted: The scheme is unknown, or the key is invalid in it.
        """
        if self.scheme not in {_SCHEME, WEBAUTHN}:
            raise NotTrusted(
                f"roster key: expected scheme {_SCHEME} or {WEBAUTHN}, found {self.scheme!r}"
            )
        if (self.scheme == WEBAUTHN) == (self.passkey is msgspec.UNSET):
            raise NotTrusted("roster key: expected what binds a passkey with it, and with no other")
        if self.passkey is msgspec.UNSET:
            return _public_key(self.public)
        return Passkey(self.public, self.passkey)


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

    def may_any(self, roles: tuple[Role, ...], namespace: str) -> bool:
        """Whether this identity has one of some roles in a namespace."""
        held = self.roles
        for role in roles:
            if role in held:
                return self.covers(namespace)
        return False

    def may_break_glass(self, namespace: str) -> bool:
        """Whether this identity may let a request of a namespace pass without approvals."""
        return self.break_glass and self.may(Role.OPERATOR, namespace)

    def covers(self, namespace: str) -> bool:
        """Whether this identity belongs to a namespace at all."""
        return namespace in self.namespaces or ANY_NAMESPACE in self.namespaces

    def lacking(self, roles: tuple[Role, ...], namespace: str) -> tuple[str, str]:
        """Describe what the identity has instead of one of these roles, and how to grant it.

        The first text completes "it has ..."; the second is a hint.
        """
        held = f"role {', '.join(self.roles)}" if self.roles else "no role"
        found = f"{held} in namespace {', '.join(self.namespaces) or 'none'}"
        role = next((role for role in roles if role in self.roles), roles[0])
        return found, (
            f"If it should have that right, run where the root key is: sealpoint keys add "
            f"{self.name} --person {shlex.quote(self.person)} --role {role} --namespace "
            f"{shlex.quote(namespace)}"
        )


class Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Identities that own threads together, such as the pods of one service."""

    name: str
    members: tuple[str, ...]


class Cutoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a key: a blob of the store chain lists its last accepted positions."""

    key: str
    """The digits of its id, as entries name it."""
    positions: str
    """The digest of that blob."""


class RosterDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The document that the root signs: every identity, and the settings of each namespace."""

    identities: tuple[Identity, ...]
    pools: tuple[Pool, ...] = ()
    policies: dict[str, str] = {}
    restore_quorum: int = 0
    cutoffs: tuple[Cutoff, ...] = msgspec.field(name="cuts", default=())


class Roster:
    """A validated roster, with its keys ready for use.

    Raises:
        NotTrusted: The document contradicts itself, or uses something that this version does not
            know.
    """

    __slots__ = (
        *("_by_name", "_once", "cutoffs", "document", "expiries", "keys", "members", "passkeys"),
        *("positions", "seq"),
    )

    def __init__(self, document: RosterDocument, *, seq: int, positions: str | None = None) -> None:
        self.document = document
        self.seq = seq
        self.positions = positions
        """The digest of a list of the threads' positions at the time when a policy changed."""
        self.keys: dict[KeyId, tuple[Identity, PublicKey]] = {}
        """Every held key that may sign entries, with its holder."""
        self.passkeys: dict[KeyId, tuple[Identity, Passkey]] = {}
        """Every held passkey, with its holder; it can only make attestations."""
        self._once: set[bytes | str] = set()
        self.expiries: dict[str, datetime] = {}
        """The expiry of each key that has one, by the digits of its id."""
        self._by_name: dict[str, Identity] = {}
        self.cutoffs = {each.key: each.positions for each in document.cutoffs}
        """Every key that has a cutoff, with the digest of its list of positions."""
        self.members = {pool.name: frozenset(pool.members) for pool in document.pools}
        """The members of every pool."""
        for identity in document.identities:
            self._add_identity(identity)
        if len(self.members) != len(document.pools) or self.members.keys() & self._by_name.keys():
            raise NotTrusted(f"roster {seq}: expected a name of its own for each pool")
        if not frozenset().union(*self.members.values()) <= self._by_name.keys():
            raise NotTrusted(f"roster {seq}: expected members of pools to be identities")
        if len(self.cutoffs) != len(document.cutoffs) or not all(
            _DIGEST.fullmatch(text)
            for each in document.cutoffs
            for text in (each.key, each.positions)
        ):
            raise NotTrusted(
                f"roster {seq}: expected cutoffs with a key and a digest, each key once"
            )
        if not all(map(_DIGEST.fullmatch, document.policies.values())):
            raise NotTrusted(f"roster {seq}: expected the digest of a policy for each namespace")

    def _add_identity(self, identity: Identity) -> None:
        if identity.name in self._by_name:
            raise NotTrusted(f"roster {self.seq}: expected identity {identity.name!r} once")
        if "" in identity.namespaces:
            # The store chain has no namespace: no one gets access to it by an empty name.
            raise NotTrusted(f"roster {self.seq}: expected namespaces with names")
        self._by_name[identity.name] = identity
        for each in identity.keys:
            self._add_key(identity, each.key, each.expires)

    def _add_key(
        self, identity: Identity, key: PublicKey | Passkey, expires: datetime | None
    ) -> None:
        # An Ed25519 key has the same bytes in a file and in an authenticator.
        once: set[bytes | str] = {key.raw}
        if isinstance(key, Passkey):
            once.add(key.binding.credential)
        if not self._once.isdisjoint(once):
            raise NotTrusted(f"roster {self.seq}: expected key {key.id.short()} with one identity")
        self._once |= once
        if key.id.raw.hex() in self.cutoffs:
            raise NotTrusted(
                f"roster {self.seq}: expected key {key.id.short()}, which has a cutoff, "
                f"with nobody, found it with {identity.name!r}"
            )
        if expires is not None:
            if expires.tzinfo is not UTC:
                # Each time has one spelling, and always has a time zone.
                raise NotTrusted(f"roster {self.seq}: expected an expiry in UTC")
            self.expiries[key.id.raw.hex()] = expires
        if isinstance(key, PublicKey):
            self.keys[key.id] = (identity, key)
        else:
            self.passkeys[key.id] = (identity, key)

    @property
    def identities(self) -> tuple[Identity, ...]:
        """Every identity, in the order of the document."""
        return self.document.identities

    @property
    def persons(self) -> frozenset[str]:
        """Every person behind an identity."""
        return frozenset(identity.person for identity in self.identities)

    def follows(self, earlier: "Roster | None") -> None:
        """Check that this roster may follow an earlier one, or be the first.

        An entry is judged by the roster that it names, so a key that lost a right could keep using
        it under the earlier roster. Therefore every reduction of rights needs a cutoff for each
        affected key.

        The same holds for a weaker policy of an earlier roster: a roster that changes a policy
        lists the positions of the threads.

        Raises:
            NotTrusted: A right is gone without a cutoff, a cutoff is gone or changed, a cutoff is
                for a key that no one held, or a policy changes without a list of positions.
        """
        self._check_positions(earlier)
        before = {} if earlier is None else earlier.cutoffs
        if not before.items() <= self.cutoffs.items():
            raise NotTrusted(f"roster {self.seq}: expected every earlier cutoff, found one gone")
        held = set() if earlier is None else {key.raw.hex() for key in earlier.holders()}
        if not self.cutoffs.keys() - before.keys() <= held:
            raise NotTrusted(
                f"roster {self.seq}: a cutoff is for a key that the roster before did not have"
            )
        for key in () if earlier is None else sorted(self.lessened(earlier)):
            if key.raw.hex() not in self.cutoffs:
                raise NotTrusted(
                    f"roster {self.seq}: key {key.short()} lost a right without a cutoff"
                )

    def _check_positions(self, earlier: "Roster | None") -> None:
        """Refuse a policy change without a list of positions; the first roster changes none."""
        if earlier is None:
            if self.positions is not None:
                raise NotTrusted(f"roster {self.seq}: the first roster cannot list positions")
        elif self.positions is None and self.document.policies != earlier.document.policies:
            raise NotTrusted(f"roster {self.seq}: it changes a policy without a list of positions")

    def lessened(self, earlier: "Roster") -> set[KeyId]:
        """Return the keys that lost a right that they had under an earlier roster."""
        nobody: frozenset[str] = frozenset()
        left = {
            member
            for name, members in earlier.members.items()
            for member in members - self.members.get(name, nobody)
        }
        return {
            key
            for key, (before, public) in earlier.holders().items()
            if before.name in left or not self._keeps(before, public)
        }

    def _keeps(self, before: Identity, key: PublicKey | Passkey) -> bool:
        """Whether a key still has the same identity and person, and all its rights."""
        now, held = self.attester(key.id) or (None, None)
        return (
            now is not None
            and held == key  # for a passkey, with everything that it is bound to
            and (now.name, now.person) == (before.name, before.person)
            and set(before.roles) <= set(now.roles)
            and before.break_glass <= now.break_glass
            and all(map(now.covers, before.namespaces))
        )

    def without_cutoffs(self) -> "Roster":
        """Return the same roster for judging rights alone: the newest one decides about cutoffs."""
        if not self.cutoffs:
            return self
        document = msgspec.structs.replace(self.document, cutoffs=())
        return Roster(document, seq=self.seq, positions=self.positions)

    def policy_digest(self, namespace: str) -> str | None:
        """Return the digest of a namespace's policy, or else of the policy for all, or None."""
        policies = self.document.policies
        return policies.get(namespace, policies.get(ANY_NAMESPACE))

    def pool_of(self, identity: str) -> str | None:
        """Return the pool of an identity that is a member of exactly one pool."""
        pools = [name for name, members in self.members.items() if identity in members]
        return pools[0] if len(pools) == 1 else None

    def identity(self, name: str) -> Identity | None:
        """Return the identity of a name, or None."""
        return self._by_name.get(name)

    def holder(self, key: KeyId) -> tuple[Identity, PublicKey] | None:
        """Return a key that may sign entries, and its holder; None if no one holds it."""
        return self.keys.get(key)

    def attester(self, key: KeyId) -> tuple[Identity, PublicKey | Passkey] | None:
        """Return a key or passkey for attestations, and its holder; None if no one holds it."""
        return self.keys.get(key) or self.passkeys.get(key)

    def key_expired_at(self, key: str, now: datetime) -> bool:
        """Whether a key or passkey has expired; most keys have no expiry.

        Args:
            key: The digits of its id.
            now: The time to compare with.
        """
        expires = self.expiries.get(key)
        return expires is not None and now >= expires

    def holders(self) -> dict[KeyId, tuple[Identity, PublicKey | Passkey]]:
        """Return every held key and passkey, with its holder."""
        return {**self.keys, **self.passkeys}

    def owns(self, identity: str, owner: str) -> bool:
        """Whether an identity is an owner, or a member of the pool that is the owner."""
        return identity == owner or identity in self.members.get(owner, ())

    def work_together(self, one: str, other: Identity) -> bool:
        """Whether two identities are of one person, or members of one pool."""
        me = self.identity(one)
        same = one == other.name or (me is not None and me.person == other.person)
        return same or any({one, other.name} <= each for each in self.members.values())
