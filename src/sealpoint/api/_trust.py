# SPDX-License-Identifier: Apache-2.0
"""Moving trust between machines: the pin is carried by people, never learned from the store."""

import os

from sealpoint.api._place import StorePlace
from sealpoint.signing import TrustPin
from sealpoint.store import Core

__all__ = ["export_pin", "import_pin"]


def export_pin(
    url: str,
    *,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> TrustPin:
    """The pin of a store, believing no roster older than the one in force now.

    Raises:
        NotTrusted: There is no pin for this store here.
        Tampered, RolledBack, Unanchored: The store chain does not verify.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    pin = place.files.pin()
    parts = place.parts(pin=pin, signer=None, namespace="default", read_only=True)
    try:
        return pin.with_roster(Core(parts).renewed_trust().roster.seq)
    finally:
        parts.storage.close()
        parts.anchor.close()


def import_pin(
    data: bytes,
    url: str,
    *,
    replace: bool = False,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> TrustPin:
    """Trust the store at `url` from now on, as a pin from elsewhere says.

    Args:
        data: What `TrustPin.encode` gave, carried over a channel that you trust.
        url: Where the store lies.
        replace: Take the place of another pin.
        config_dir: Where the pin is kept, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Raises:
        NotTrusted: The data is no pin.
        StoreExists: There is another pin for this store.
    """
    pin = TrustPin.parse(data)
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    place.make_secret()
    place.files.write_pin(pin, replace=replace)
    return pin
