# SPDX-License-Identifier: Apache-2.0
"""Moving trust between machines: the pin is carried by people, never learned from the store."""

import os

from sealpoint.api._location import StorePlace
from sealpoint.config import Group, StoreFiles, StoreUrl
from sealpoint.errors import StorageUnavailable, StoreExists
from sealpoint.signing import TrustPin
from sealpoint.store import Core


def export_pin(
    url: str,
    *,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> TrustPin:
    """The pin of a store, believing no roster and no root older than those in force now.

    Raises:
        NotTrusted: There is no pin for this store here.
        Tampered, RolledBack, Unanchored: The store chain does not verify.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    pin = place.files.pin()
    parts = place.parts(pin=pin, signer=None, namespace="default", read_only=True)
    try:
        chain = Core(parts).renewed_trust()
        return pin.with_roster(chain.roster.seq).with_root(chain.root)
    finally:
        parts.close()


def import_pin(
    data: bytes,
    url: str,
    *,
    replace: bool = False,
    group: str | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> TrustPin:
    """Trust the store at `url` from now on, as a pin from elsewhere says.

    Args:
        data: What `TrustPin.encode` gave, carried over a channel that you trust.
        url: Where the store lies.
        replace: Take the place of another pin.
        group: The name of the group that shares the store and its anchor, as it was made with;
            `state_dir` is then the directory of that anchor.
        config_dir: Where the pin is kept, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Raises:
        NotTrusted: The data is no pin.
        StoreExists: There is another pin for this store.
    """
    pin = TrustPin.parse(data)
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    if group is not None:
        shared = Group.find(group, place.settings.state_dir)
        shared.require_member()
        place.files.take_shared_secret(pin.store, shared)
        place.files.declare_group(shared)
        place.files.write_pin(pin, replace=replace)
        return pin
    anchor = place.files.anchor_directory(pin.store)
    if not place.files.has_pin() and anchor.exists():
        known = ", ".join(place.files.known_urls())
        raise StoreExists(
            f"store {place.url}: expected one that is new to this machine, found its anchor here",
            hint=f"If it was moved: sealpoint trust move OLD-URL, one of {known}."
            if known
            else f"Its secret is lost, so nobody can read that anchor: move {anchor} away first.",
        )
    place.make_secret()
    place.files.write_pin(pin, replace=replace)
    return pin


def move_store(
    old_url: str,
    url: str,
    *,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> TrustPin:
    """Go on with a store that was moved: pin, keys and secret now belong to the new URL.

    Where both URLs are the same one, its directory has become a link, or leads elsewhere than it
    did: from now on it belongs where it leads now. The store itself is moved by whoever runs this;
    nothing in it is read or written.

    Raises:
        NotTrusted: Nothing is known here about the old URL.
        StoreExists: There is a pin for the new one already.
        StorageUnavailable: There is no store at the new URL.
    """
    new = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    # Where the old one lay does not matter any more: a misplaced store may be moved away.
    old = StoreFiles(new.settings, StoreUrl.parse(old_url))
    old.pin()
    if new.url.is_vacant(new.url.target()):
        raise StorageUnavailable(
            f"store {new.url}: expected the moved store, found none",
            hint="Move the store first, then say where it lies now.",
        )
    new.files.move_from(old)
    return new.files.pin()
