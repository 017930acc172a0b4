# SPDX-License-Identifier: Apache-2.0
"""The stores that a machine has files for. The module opens no store and no key."""

from dataclasses import dataclass, replace

from sealpoint.api._store_location import Directory
from sealpoint.config import (
    Settings,
    StoreFiles,
    StoreUrl,
    known_urls,
    load_settings,
    store_password,
)
from sealpoint.errors import SealpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStore:
    """A store that this machine has files for."""

    url: str
    store: str | None = None
    """Its id in the pin; None if there is no pin."""
    keys: tuple[str, ...] = ()
    """The identities whose private keys are here."""
    anchor: bool = False
    """Whether its anchor is here."""
    data: bool | None = None
    """Whether there is data at the URL; None if that is unknown."""
    fault: str = ""
    """Why the rest is unknown."""


def known_stores(
    *, config_dir: Directory = None, state_dir: Directory = None
) -> tuple[KnownStore, ...]:
    """Return the stores that this machine has files for. Opens no store and no key.

    Args:
        config_dir: The directory of keys and pins, instead of the user's configuration directory.
        state_dir: The directory of anchors, instead of the user's state directory.
    """
    settings = load_settings(config_dir=config_dir, state_dir=state_dir)
    return tuple(_known_store(settings, url) for url in known_urls(settings))


def _known_store(settings: Settings, text: str) -> KnownStore:
    found = KnownStore(url=text)
    try:
        url = StoreUrl.parse(text)
        files = StoreFiles.find(settings, url)
        found = replace(found, keys=tuple(files.keys.names()))
        found = replace(found, data=not url.is_vacant(url.target(), store_password(None)))
        store = files.pin().store
        anchor = files.anchor_directory(store).is_dir()
        return replace(found, store=str(store), anchor=anchor)
    except SealpointError as error:
        return replace(found, fault=error.message)
