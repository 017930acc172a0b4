# SPDX-License-Identifier: Apache-2.0
"""Making a store: keys, pin, first roster, anchor.

The order makes an interrupted `init` safe to repeat: keys, then the pin that names them, then the
roster in the store, then the anchor. What is there already is used, never replaced.
"""

import os
from pathlib import Path

from sealpoint.api._location import Directory, StoreLocation, identity_of
from sealpoint.config import Group, PassphraseSource, choosing, make_shared_directory
from sealpoint.errors import RolledBack, StorageUnavailable, StoreExists
from sealpoint.gate import Policy, shipped_policy
from sealpoint.ids import StoreId
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.signing import (
    ANY_NAMESPACE,
    PrivateKey,
    Role,
    Root,
    RosterDocument,
    TrustPin,
    Unlock,
)
from sealpoint.storage import Storage
from sealpoint.store import Core, append_roster

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
) -> TrustPin:
    """Make a new store, its keys and its anchor.

    Two identities are made besides the root: `worker`, who writes, and `operator`, who may do
    everything else. Both belong to one person and to all namespaces.

    Args:
        url: Where the store lies, such as `sqlite:///agents.db` or `file:///srv/agents`.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: Under which all three keys are encrypted, or a function that is called with
            the name of each; without it they are not.
        policy: What the gate asks for in every namespace: `solo`, `team`, or the bytes of a
            policy file.
        group: The name of a group of this machine whose members share store and anchor; then
            `state_dir` is a directory of theirs. They trust each other not to turn the anchor
            back.

    Returns:
        The pin, which holds no secret.

    Raises:
        StoreExists: There is a store already.
        RolledBack: There was one, and it is gone.
        ConfigError: A directory cannot be used, or the store would lie among its keys.
        KeyLocked: An interrupted `init` made keys under another passphrase.
        UrlInvalid: The URL names no store on disk.
        PolicyInvalid: The policy is none.
    """
    chosen = Policy.parse(shipped_policy(policy) if isinstance(policy, str) else policy)
    location = StoreLocation.find(
        url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase
    )
    shared = _shared(location, group)
    choose = None if passphrase is None else choosing(passphrase)
    root, worker, operator = (_key(location, name, choose) for name in (ROOT, WORKER, OPERATOR))
    if not location.files.has_pin():
        location.make_secret()
        location.files.write_pin(
            TrustPin(
                store=StoreId.draw(os.urandom),
                root=Root(version=1, threshold=1, keys=[root.public]),
            )
        )
    pin = location.files.pin()
    with location.open_core(signer=operator, create=True) as core:
        _begin(core, location, root, first_roster(worker, operator, chosen), chosen)
        if shared is not None:
            location.files.share_secret(pin.store, shared)
        location.files.mark_initialised()
    return pin


def _begin(
    core: Core, location: StoreLocation, root: PrivateKey, document: RosterDocument, policy: Policy
) -> None:
    """Write the first roster and let the anchor know it, as far as that was not done before."""
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
    """The group that is to share the store, once it can; nothing is made where one is already."""
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
    """Refuse to make a store where there is one, before anything is written."""
    target = location.target()
    if location.url.path is not None:
        _require_directory(location, Path(target).parent)
    vacant = location.url.is_vacant(target)
    if not vacant and not location.files.has_pin():
        raise StoreExists(
            f"store {location.url}: there is a store or a file at this place already",
            hint="To trust an existing store, run: sealpoint trust import PIN",
        )
    if location.files.has_pin() and not {ROOT, WORKER, OPERATOR} <= set(
        location.files.keys.names()
    ):
        # An interrupted `init` has its keys before its pin: this pin came from elsewhere.
        raise StoreExists(
            f"store {location.url}: this machine has a pin of it already, without the keys of a "
            "new store",
            hint="The store exists: open it, or run: sealpoint anchor adopt --reason '...'",
        )
    if location.files.is_initialised() and not vacant:
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
    """Whether there is no more than an interrupted `init` leaves: the rest is for adoption."""
    return storage.read(STORE_CHAIN, 1) is None and list(storage.threads()) == [STORE_CHAIN]


def first_roster(worker: PrivateKey, operator: PrivateKey, policy: Policy) -> RosterDocument:
    """The roster of a store that one person runs."""
    others = (Role.APPROVER, Role.AUDITOR, Role.OPERATOR, Role.PRIVACY)
    return RosterDocument(
        identities=(
            identity_of(worker, (Role.WRITER,), person=_PERSON, namespaces=_EVERYWHERE),
            identity_of(operator, others, person=_PERSON, namespaces=_EVERYWHERE),
        ),
        policies={ANY_NAMESPACE: policy.digest},
    )


def _key(location: StoreLocation, name: str, choose: Unlock | None) -> PrivateKey:
    """A key of an interrupted `init`, or a new one."""
    if name not in location.files.keys.names():
        signer = PrivateKey.draw(name, os.urandom)
        location.files.keys.write(signer, choose)
        return signer
    if choose is not None and not location.files.keys.facts(name).encrypted:
        # It was made without a passphrase, and is now asked for with one.
        return location.files.keys.relock(name, location.unlock, choose)
    return location.signer(name)
