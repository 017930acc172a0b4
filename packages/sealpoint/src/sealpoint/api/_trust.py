# SPDX-License-Identifier: Apache-2.0
"""Moving trust between machines: the pin is carried by people, never learned from the store."""

from sealpoint.api._store_location import StoreLocation
from sealpoint.config import Group, StoreFiles, StoreUrl, read_shared_secret
from sealpoint.errors import StorageUnavailable, StoreExists
from sealpoint.signing import TrustPin


class TrustAdmin:
    """`admin.trust`: the pin of this machine."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def export_pin(self) -> TrustPin:
        """Return the pin of a store, which accepts no roster or root older than those in force now.

        Raises:
            NotTrusted: There is no pin for this store here.
            Tampered, RolledBack, Unanchored: The store chain does not verify.
        """
        with self._location.open_core(read_only=True) as core:
            chain = core.renewed_trust()
            return core.parts.pin.with_roster(chain.roster.seq).with_root(chain.root)

    def import_pin(
        self, data: bytes, *, replace: bool = False, group: str | None = None
    ) -> TrustPin:
        """Trust the store from now on, by a pin from another machine.

        Args:
            data: The result of `TrustPin.encode`, carried over a channel that you trust.
            replace: Replace another pin.
            group: The name of the group that shares the store and its anchor, as it was made with;
                `state_dir` is then the directory of that anchor.

        Raises:
            NotTrusted: The data is not a pin.
            StoreExists: There is another pin for this store.
        """
        pin = TrustPin.parse(data)
        location, files = self._location, self._location.files
        if group is not None:
            shared = Group.find(group, location.settings.state_dir)
            shared.require_member()
            files.take_secret(read_shared_secret(files.anchor_directory(pin.store), shared))
            files.declare_group(shared)
            files.write_pin(pin, replace=replace)
            return pin
        anchor = files.anchor_directory(pin.store)
        if not files.has_pin() and anchor.exists():
            known = ", ".join(files.known_urls())
            raise StoreExists(
                f"store {location.url}: an anchor of this store is on this machine already",
                hint=f"If it was moved: sealpoint trust move OLD-URL, one of {known}."
                if known
                else f"Its secret is lost, so nobody can read that anchor: move {anchor} away "
                "first.",
            )
        location.make_secret()
        files.write_pin(pin, replace=replace)
        return pin

    def move_from(self, old_url: str) -> TrustPin:
        """Continue with a store that was moved: pin, keys and secret now belong to the new URL.

        If both URLs are the same, the store's directory has become a link, or leads to another
        place than before: the files now belong to the new place. The caller moves the store itself;
        nothing in it is read or written.

        Args:
            old_url: The previous URL of the store.

        Raises:
            NotTrusted: Nothing is known here about the old URL.
            StoreExists: There is a pin for the new one already.
            StorageUnavailable: There is no store at the new URL.
        """
        new = self._location
        # The old place does not matter any more: a misplaced store may be moved away.
        old = StoreFiles(new.settings, StoreUrl.parse(old_url))
        old.pin()
        if new.url.is_vacant(new.url.target(), new.password):
            raise StorageUnavailable(
                f"store {new.url}: there is no store at this place",
                hint="Move the store first, then say where it lies now.",
            )
        new.files.move_from(old)
        return new.files.pin()
