# SPDX-License-Identifier: Apache-2.0
"""Giving a key on this machine a passphrase, another one, or none."""

import os

from sealpoint.api._place import StorePlace
from sealpoint.config import PassphraseSource, choosing
from sealpoint.signing import PublicKey

__all__ = ["change_passphrase"]


def change_passphrase(
    url: str,
    name: str,
    *,
    new: PassphraseSource | None,
    passphrase: PassphraseSource | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> PublicKey:
    """Encrypt a private key on this machine under another passphrase, or under none.

    The key stays the same, and so does everything that it signed. The new file takes the place
    of the old one when it is durable, and not before.

    Args:
        url: The store.
        name: The identity.
        new: The new passphrase, or a function that is called with the key's name once the old
            one is open; None leaves the key unencrypted.
        passphrase: What opens the key now, if it is encrypted, as for `open_store`.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Returns:
        The public half.

    Raises:
        KeyLocked: The key is encrypted, and the passphrase is missing or does not open it.
        KeyMissing: The key is not on this machine.
        UsageError: The new passphrase is empty, too long, or no line of text.
        ConfigError: The key file was changed by somebody else meanwhile.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    place.files.pin()
    choose = None if new is None else choosing(new)
    return place.files.relock_key(name, place.unlock, choose).public
