# SPDX-License-Identifier: Apache-2.0
"""Opening a store."""

import os
from dataclasses import replace

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.api._init import WORKER, first_roster
from sealpoint.api._location import Directory, OnEvent, StoreLocation, Trust, now
from sealpoint.api._store import Store
from sealpoint.codec import Registry
from sealpoint.config import PassphraseSource, StoreUrl, check_identity_name
from sealpoint.errors import KeyNotInForce, NoRight, UsageError
from sealpoint.gate import Policy, shipped_policy
from sealpoint.ids import StoreId
from sealpoint.ledger import StoreChain
from sealpoint.signing import PrivateKey, RemoteKey, Root, Signer, TrustPin, public_key_of
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import Core, StoreParts, append_roster


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
) -> Store:
    """Open a store.

    Args:
        url: `memory:` (nothing is kept), `sqlite:///relative.db`, `sqlite:////absolute.db` or
            `file:///absolute/directory`.
        identity: Whose key signs: `worker` if nobody says another; with `signer=`, the roster does.
        namespace: Which threads: the roster gives rights by namespace.
        registry: The types that may be saved and loaded; without it, plain data and built-ins.
        trust: A pin, its path or an open descriptor; else SEALPOINT_TRUST_FD, else the one here.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        read_only: No private key is needed and nothing at all is written.
        on_event: Called with an `Event` for what happens: codes and digests only.
        passphrase: What opens the identity's key if it is encrypted, or a function that is then
            called with its name; else what SEALPOINT_PASSPHRASE or SEALPOINT_PASSPHRASE_FILE names.
        signer: A key that lives elsewhere, such as in a KMS: no private key is read here.
        secrets_dir: A mounted secret, looked into before config_dir; else SEALPOINT_SECRETS_DIR.
        key_fd: An open descriptor that the key is read from; else SEALPOINT_KEY_FD.

    Raises:
        NotTrusted: No pin vouches for the store, or its roster is not signed by the root.
        Unanchored: The anchor of this machine does not know the store.
        RolledBack: The store's roster is older than the anchor or the pin says.
        KeyMissing, KeyLocked: The identity's private key is not here, or does not open.
        SignerFailed: The signer does not tell its public key.
        ConfigError, StorageUnavailable: Keys, directories or the store cannot be used.
    """
    _require_types(registry, read_only=read_only)
    in_memory = not StoreUrl.parse(url).backend.outlives_process
    _require_alone(signer, other_key=(passphrase, key_fd), keyless=in_memory or read_only)
    if in_memory:
        _require_plain(trust, read_only=read_only)
        return _memory(identity or WORKER, namespace, registry, on_event)
    location = StoreLocation.find(
        url,
        config_dir=config_dir,
        state_dir=state_dir,
        passphrase=passphrase,
        secrets_dir=secrets_dir,
        key_fd=key_fd,
    )
    pin = location.pin(trust)
    if not read_only and not location.files.has_pin():
        location.make_secret()  # a machine that has only been told whom to trust
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


def _require_types(registry: Registry | None, *, read_only: bool) -> None:
    """Refuse to write what a registry loads that shows values of unknown types as data."""
    if registry is not None and registry.shows_untyped and not read_only:
        raise UsageError(
            "registry: it shows values of unknown types as data, which is for reading alone",
            hint="Open the store with read_only=True, or with a registry that allows the types.",
        )


def _require_plain(trust: Trust | None, *, read_only: bool) -> None:
    if trust is not None or read_only:
        raise UsageError("memory: trust= and read_only= do not apply to a store that keeps nothing")


def _require_alone(signer: Signer | None, *, other_key: object, keyless: bool) -> None:
    """Refuse a signer beside another key, or where nothing is signed with it."""
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
    """A key that lives elsewhere, under the name that the roster has for it.

    Raises:
        KeyNotInForce: The roster does not have the key.
        NoRight: It is another identity's.
        SignerFailed: The signer does not tell its public key.
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
    """A store that lives as long as the process, with keys that nobody else ever has."""
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
