# SPDX-License-Identifier: Apache-2.0
"""Making a store, and opening it.

The order makes an interrupted `init` safe to repeat: keys, then the pin that names them, then the
roster in the store, then the anchor. Existing parts are used, never replaced.
"""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sealpoint.anchor import AnchorUrl
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.api._store import Store
from sealpoint.api._store_location import Directory, OnEvent, StoreLocation, Trust, identity_of, now
from sealpoint.codec import Registry
from sealpoint.config import (
    Group,
    PassphraseSource,
    PasswordSource,
    StoreUrl,
    check_identity_name,
    choosing,
    make_shared_directory,
    parse_anchor_url,
    share_secret,
)
from sealpoint.errors import (
    KeyNotInForce,
    NoRight,
    RolledBack,
    StorageUnavailable,
    StoreExists,
    UsageError,
)
from sealpoint.gate import Policy, shipped_policy
from sealpoint.ids import StoreId
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.signing import (
    ANY_NAMESPACE,
    PrivateKey,
    RemoteKey,
    Role,
    Root,
    RosterDocument,
    Signer,
    TrustPin,
    Unlock,
    public_key_of,
)
from sealpoint.storage import Storage
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import Core, StoreParts, append_roster

ROOT = "root"
WORKER = "worker"
OPERATOR = "operator"
_EVERYWHERE = ("*",)
_PERSON = "owner"


def init(
    url: str,
    *,
    config_dir: Directory = None,
    state_dir: Directory = None,
    passphrase: PassphraseSource | None = None,
    policy: str | bytes = "solo",
    group: str | None = None,
    password: PasswordSource | None = None,
    anchor: str | None = None,
    anchor_password: PasswordSource | None = None,
) -> TrustPin:
    """Make a new store, its keys and its anchor.

    Two identities are made in addition to the root: `worker`, which writes, and `operator`, which
    may do everything else. Both belong to one person and to all namespaces.

    Args:
        url: The place of the store, such as `sqlite:///agents.db` or `file:///srv/agents`.
        config_dir: The directory of keys and pin, instead of the user's configuration directory.
        state_dir: The directory of the anchor, instead of the user's state directory.
        passphrase: The passphrase that encrypts all three keys, or a function that receives the
            name of each; without it they are not encrypted.
        policy: The policy for every namespace: `solo`, `team`, `strict`, or the bytes of a
            file.
        group: The name of a group of this machine whose members share store and anchor, in a shared
            `state_dir`. They trust each other not to set back the anchor.
        password: The password of a database, as for `open_store`.
        anchor: `postgresql://USER@HOST/DATABASE`: an anchor that other machines use too.
        anchor_password: The password of that database.

    Returns:
        The pin, which holds no secret.

    Raises:
        StoreExists: There is a store already.
        RolledBack: There was a store, and it is gone.
        ConfigError: A directory cannot be used, or the store would be stored among its keys.
        KeyLocked: An interrupted `init` made keys under another passphrase.
        UrlInvalid: The URL names no store on disk.
        PolicyInvalid: The policy is invalid.
    """
    chosen = Policy.parse(shipped_policy(policy) if isinstance(policy, str) else policy)
    others = None if anchor is None else parse_anchor_url(anchor)
    location = StoreLocation.find(
        url,
        config_dir=config_dir,
        state_dir=state_dir,
        passphrase=passphrase,
        password=password,
        anchor_password=anchor_password,
    )
    shared = _shared(location, group)
    choose = None if passphrase is None else choosing(passphrase)
    root, worker, operator = (_key(location, name, choose) for name in (ROOT, WORKER, OPERATOR))
    pin = _first_pin(location, root)
    if others is not None:
        _share_anchor(location, pin, others)
    with location.open_core(signer=operator, create=True) as core:
        _begin(core, location, root, first_roster(worker, operator, chosen), chosen)
        if shared is not None:
            directory = location.files.anchor_directory(pin.store)
            share_secret(directory, location.files.secret(), shared)
        location.files.mark_initialized()
    return pin


def _first_pin(location: StoreLocation, root: PrivateKey) -> TrustPin:
    """Return the pin of an interrupted `init`, or make a new one, after the secret of the slots."""
    if not location.files.has_pin():
        location.make_secret()
        location.files.write_pin(
            TrustPin(
                store=StoreId.draw(os.urandom),
                root=Root(version=1, threshold=1, keys=[root.public]),
            )
        )
    return location.files.pin()


def _share_anchor(location: StoreLocation, pin: TrustPin, url: AnchorUrl) -> None:
    """Make a new store share its anchor: the database has the secret before its first use."""
    shared = location.open_shared_anchor(pin.store, url=url, read_only=False, create=True)
    if shared is not None:
        with closing(shared):
            location.files.take_secret(shared.keep_secret(location.files.secret()))
    location.files.shared_anchor.declare(url)


def _begin(
    core: Core, location: StoreLocation, root: PrivateKey, document: RosterDocument, policy: Policy
) -> None:
    """Write the first roster and anchor it, as far as an earlier call has not done so."""
    storage = core.storage
    if storage.read(STORE_CHAIN, 0) is None:
        if core.is_anchored():
            raise RolledBack(
                f"store {location.url}: this machine knows the store, and it is gone from there"
            )
        blobs = {bytes.fromhex(policy.digest): policy.source}
        begun = StoreChain(core.parts.pin)
        chain = append_roster(core, begun, document, [root], reason="init", blobs=blobs)
        core.anchor_store_chain(chain)
    elif core.is_anchored() or not _is_new(storage):
        raise StoreExists(f"store {location.url}: it is initialised already")
    else:
        core.anchor_store_chain()


def _shared(location: StoreLocation, name: str | None) -> Group | None:
    """Return the group that will share the store; changes nothing if a store already exists."""
    if name is None:
        _require_new(location)
        return None
    group = Group.find(name, location.settings.state_dir)
    group.require_member()
    for directory in (location.directory(), location.settings.state_dir):
        make_shared_directory(directory, group)
    _require_new(location)
    location.files.declare_group(group)
    return group


def _require_new(location: StoreLocation) -> None:
    """Refuse to make a store where one already exists, before anything is written."""
    target = location.target()
    if location.url.path is not None:
        _require_directory(location, Path(target).parent)
    vacant = location.is_vacant()
    if not vacant and not location.files.has_pin():
        raise StoreExists(
            f"store {location.url}: there is a store or a file at this place already",
            hint="To trust an existing store, run: sealpoint trust import PIN",
        )
    if location.files.has_pin() and not {ROOT, WORKER, OPERATOR} <= set(
        location.files.keys.names()
    ):
        # An interrupted `init` has its keys before its pin: this pin came from another machine.
        raise StoreExists(
            f"store {location.url}: this machine has a pin of it already, without the keys of a "
            "new store",
            hint="The store exists: open it, or run: sealpoint anchor adopt --reason '...'",
        )
    if location.files.is_initialized() and not vacant:
        raise StoreExists(f"store {location.url}: it is initialised already")


def _require_directory(location: StoreLocation, directory: Path) -> None:
    try:
        is_there = directory.is_dir()
    except OSError as exc:
        raise StorageUnavailable(
            f"store {location.url}: {directory} cannot be looked at: {exc.strerror}"
        ) from exc
    if not is_there:
        raise StorageUnavailable(
            f"store {location.url}: there is no directory {directory}",
            hint=f"Make it: mkdir -p '{directory}'. Nothing was written.",
        )


def _is_new(storage: Storage) -> bool:
    """Whether the store has only what an interrupted `init` leaves: the rest is for adoption."""
    return storage.read(STORE_CHAIN, 1) is None and {*dict(storage.heads())} == {STORE_CHAIN}


def first_roster(worker: PrivateKey, operator: PrivateKey, policy: Policy) -> RosterDocument:
    """Return the roster of a store that one person runs."""
    others = (Role.APPROVER, Role.AUDITOR, Role.OPERATOR, Role.PRIVACY)
    return RosterDocument(
        identities=(
            identity_of(worker, (Role.WRITER,), person=_PERSON, namespaces=_EVERYWHERE),
            identity_of(operator, others, person=_PERSON, namespaces=_EVERYWHERE),
        ),
        policies={ANY_NAMESPACE: policy.digest},
    )


def _key(location: StoreLocation, name: str, choose: Unlock | None) -> PrivateKey:
    """Return the key of an interrupted `init`, or make a new one."""
    if name not in location.files.keys.names():
        signer = PrivateKey.draw(name, os.urandom)
        location.files.keys.write(signer, choose)
        return signer
    if choose is not None and not location.files.keys.facts(name).encrypted:
        # It was made without a passphrase, and this call gives one.
        return location.files.keys.relock(name, location.unlock, choose)
    return location.signer(name)


def open_store(
    url: str,
    *,
    identity: str | None = None,
    namespace: str = "default",
    registry: Registry | None = None,
    trust: Trust | None = None,
    config_dir: Directory = None,
    state_dir: Directory = None,
    read_only: bool = False,
    on_event: OnEvent | None = None,
    passphrase: PassphraseSource | None = None,
    signer: Signer | None = None,
    secrets_dir: Directory = None,
    key_fd: int | None = None,
    password: PasswordSource | None = None,
    anchor_password: PasswordSource | None = None,
) -> Store:
    """Open a store.

    Args:
        url: Such as `memory:` (nothing is kept), `sqlite:////absolute.db` or `postgresql://...`.
        identity: Whose key signs; without it `worker`, or with `signer=` the roster decides.
        namespace: The namespace of the threads: the roster gives rights by namespace.
        registry: The types that may be saved and loaded; without it, plain data and built-ins.
        trust: A pin, its path or an open descriptor; else SEALPOINT_TRUST_FD, else the one here.
        config_dir: The directory of keys and pin, instead of the user's configuration directory.
        state_dir: The directory of the anchor, instead of the user's state directory.
        read_only: No private key is needed and nothing at all is written.
        on_event: Called with an `Event` for what happens: codes and digests only.
        passphrase: Of an encrypted key, or a function of its name; else SEALPOINT_PASSPHRASE_FILE.
        signer: A key that is held elsewhere, such as in a KMS: no key is read here.
        secrets_dir: A mounted secret, searched before config_dir; else SEALPOINT_SECRETS_DIR.
        key_fd: An open descriptor that the key is read from; else SEALPOINT_KEY_FD.
        password: Of a database, or its source; else SEALPOINT_STORE_PASSWORD_FILE or PGPASSFILE.
        anchor_password: Of a shared anchor; else SEALPOINT_ANCHOR_PASSWORD_FILE or PGPASSFILE.

    Raises:
        NotTrusted: No pin vouches for the store, or its roster is not signed by the root.
        Unanchored, RolledBack: The anchor does not know the store, or saw a newer roster.
        KeyMissing, KeyLocked, SignerFailed: The identity's key is not here, or cannot be used.
        ConfigError, StorageUnavailable: Keys, directories or the store cannot be used.
    """
    _require_types(registry, read_only=read_only)
    in_memory = not (parsed := StoreUrl.parse(url)).backend.outlives_process
    _require_alone(signer, other_key=(passphrase, key_fd), keyless=in_memory or read_only)
    if in_memory:
        _require_plain(trust, read_only=read_only)
        return _memory(identity or WORKER, namespace, registry, on_event)
    location = StoreLocation.find(
        parsed,
        config_dir=config_dir,
        state_dir=state_dir,
        passphrase=passphrase,
        secrets_dir=secrets_dir,
        key_fd=key_fd,
        password=password,
        anchor_password=anchor_password,
    )
    pin = _known_pin(location, trust, read_only=read_only)
    own = None if read_only or signer is not None else location.own_key(identity or WORKER)
    parts = location.parts(
        pin=pin,
        signer=own,
        namespace=namespace,
        registry=registry,
        read_only=read_only,
        on_event=on_event,
    )
    return _opened(parts, signer, identity)


def _known_pin(location: StoreLocation, trust: Trust | None, *, read_only: bool) -> TrustPin:
    """Return the pin to trust; a machine with only a pin also gets a secret for its anchor."""
    pin = location.pin(trust)
    if not read_only and not location.files.has_pin():
        location.make_secret()
    return pin


def _require_types(registry: Registry | None, *, read_only: bool) -> None:
    """Refuse to write with a registry that shows values of unknown types as data."""
    if registry is not None and registry.shows_untyped and not read_only:
        raise UsageError(
            "registry: it shows values of unknown types as data, which is for reading alone",
            hint="Open the store with read_only=True, or with a registry that allows the types.",
        )


def _require_plain(trust: Trust | None, *, read_only: bool) -> None:
    if trust is not None or read_only:
        raise UsageError("memory: trust= and read_only= do not apply to a store that keeps nothing")


def _require_alone(signer: Signer | None, *, other_key: object, keyless: bool) -> None:
    """Refuse a signer together with another key, or where nothing is signed."""
    if signer is not None and (other_key != (None, None) or keyless):
        raise UsageError(
            "signer: it cannot be combined with memory:, read_only=, key_fd= or passphrase="
        )


def _opened(parts: StoreParts, signer: Signer | None = None, identity: str | None = None) -> Store:
    try:
        if signer is not None:
            parts = replace(parts, signer=remote_key(Core(parts).trust(), signer, identity))
        return Store(parts)
    except BaseException:
        parts.close()
        raise


def remote_key(trust: StoreChain, signer: Signer, identity: str | None) -> RemoteKey:
    """Return a key that is held elsewhere, under its name in the roster.

    Raises:
        KeyNotInForce: The roster does not have the key.
        NoRight: It belongs to another identity.
        SignerFailed: The signer does not return its public key.
    """
    public = public_key_of(signer)
    holder = trust.roster.holder(public.id)
    if holder is None:
        named = identity or "NAME"
        raise KeyNotInForce(
            f"signer: its public key {public} is not in roster {trust.roster.seq}",
            hint=f"Where the root key is: sealpoint keys add {named} --public-key {public} "
            "--person WHO --role writer --namespace default",
        )
    if identity is not None and holder[0].name != identity:
        raise NoRight(
            f"signer: expected the key of identity {identity!r}, found that of {holder[0].name!r}",
            hint="Leave identity= out, or give the signer the other key.",
        )
    return RemoteKey(holder[0].name, public, signer)


def _memory(
    identity: str, namespace: str, registry: Registry | None, on_event: OnEvent | None
) -> Store:
    """Return a store that lives as long as the process, with keys that are never shared."""
    root = PrivateKey.draw("root", os.urandom)
    worker = PrivateKey.draw(check_identity_name(identity), os.urandom)
    operator = PrivateKey.draw("operator" if identity != "operator" else "worker", os.urandom)
    parts = StoreParts(
        storage=MemoryStorage(),
        anchor=MemoryAnchor(),
        pin=TrustPin(
            store=StoreId.draw(os.urandom), root=Root(version=1, threshold=1, keys=[root.public])
        ),
        secret=os.urandom(32),
        signer=worker,
        registry=Registry() if registry is None else registry,
        namespace=namespace,
        read_only=False,
        now=now,
        random_bytes=os.urandom,
        on_event=on_event,
    )
    core = Core(parts)
    policy = Policy.parse(shipped_policy("solo"))
    chain = append_roster(
        core,
        StoreChain(parts.pin),
        first_roster(worker, operator, policy),
        [root],
        blobs={bytes.fromhex(policy.digest): policy.source},
    )
    core.anchor_store_chain(chain)
    return _opened(parts)
