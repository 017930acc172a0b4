# SPDX-License-Identifier: Apache-2.0
"""Opening a store."""

import os

from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.api._init import first_roster
from sealpoint.api._place import OnEvent, StorePlace, now, read_pin
from sealpoint.api._store import Store
from sealpoint.codec import Registry
from sealpoint.config import PassphraseSource, StoreUrl, check_identity_name
from sealpoint.errors import UsageError
from sealpoint.gate import Policy, shipped_policy
from sealpoint.ids import StoreId
from sealpoint.ledger import StoreChain
from sealpoint.signing import PrivateKey, Root, TrustPin
from sealpoint.storage.memory import MemoryStorage
from sealpoint.store import Core, Parts, append_roster

__all__ = ["open_store"]


def open_store(
    url: str,
    *,
    identity: str = "worker",
    namespace: str = "default",
    registry: Registry | None = None,
    trust: TrustPin | str | os.PathLike[str] | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    read_only: bool = False,
    on_event: OnEvent | None = None,
    passphrase: PassphraseSource | None = None,
) -> Store:
    """Open a store.

    Args:
        url: `memory:` (nothing is kept), `sqlite:///relative.db`, `sqlite:////absolute.db` or
            `file:///absolute/directory`.
        identity: Whose key signs what is saved.
        namespace: Which threads: the roster gives rights by namespace.
        registry: The types that may be saved and loaded; without it, plain data and built-ins.
        trust: A pin, or the path of one, instead of the one in the configuration directory.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        read_only: No private key is needed and nothing at all is written.
        on_event: Called with an `Event` for what happens: codes and digests only.
        passphrase: What opens the identity's key if it is encrypted, or a function that is then
            called with its name; without it, what SEALPOINT_PASSPHRASE or
            SEALPOINT_PASSPHRASE_FILE names. The key is opened once, here.

    Raises:
        NotTrusted: No pin vouches for the store, or its roster is not signed by the root.
        Unanchored: The anchor of this machine does not know the store.
        RolledBack: The store's roster is older than the anchor or the pin says.
        KeyMissing: The identity's private key is not on this machine.
        KeyLocked: It is encrypted, and the passphrase is missing or does not open it.
        ConfigError: Keys or directories are not safe to use.
        StorageUnavailable: The store cannot be opened.
    """
    if StoreUrl.parse(url).kind == "memory":
        if trust is not None or read_only:
            raise UsageError("memory: expected neither trust= nor read_only=, it keeps nothing")
        return _memory(identity, namespace, registry, on_event)
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    pin = place.files.pin() if trust is None else read_pin(trust)
    if trust is not None and not read_only and not place.files.has_pin():
        place.make_secret()  # a machine that has only been told whom to trust
    signer = None if read_only else place.signer(identity)
    parts = place.parts(
        pin=pin,
        signer=signer,
        namespace=namespace,
        registry=registry,
        read_only=read_only,
        on_event=on_event,
    )
    return _opened(parts)


def _opened(parts: Parts) -> Store:
    try:
        return Store(parts)
    except BaseException:
        parts.close()
        raise


def _memory(
    identity: str, namespace: str, registry: Registry | None, on_event: OnEvent | None
) -> Store:
    """A store that lives as long as the process, with keys that nobody else ever has."""
    root = PrivateKey.draw("root", os.urandom)
    worker = PrivateKey.draw(check_identity_name(identity), os.urandom)
    operator = PrivateKey.draw("operator" if identity != "operator" else "worker", os.urandom)
    parts = Parts(
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
