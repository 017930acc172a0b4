# SPDX-License-Identifier: Apache-2.0
"""From a URL to the parts of a store: backend, anchor, pin and keys."""

import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sealpoint.anchor.local import LocalAnchor
from sealpoint.codec import Registry
from sealpoint.config import (
    PassphraseSource,
    Settings,
    StoreFiles,
    StoreUrl,
    load_settings,
    read_pin_descriptor,
    read_pin_file,
    unlocking,
)
from sealpoint.errors import KeyMissing, RolledBack, UrlInvalid, UsageError
from sealpoint.ledger import StoreChain
from sealpoint.signing import (
    Identity,
    PrivateKey,
    Role,
    Root,
    RosterKey,
    SigningKey,
    TrustPin,
    Unlock,
)
from sealpoint.store import Core, Event, StoreParts, copy_roster, store_slot

OnEvent = Callable[[Event], object]
Trust = TrustPin | str | os.PathLike[str] | int


def now() -> datetime:
    """The clock of this machine."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store on this machine: where it lies, and the files that belong to it."""

    url: StoreUrl
    files: StoreFiles
    settings: Settings
    unlock: Unlock = field(repr=False)
    """Gives the passphrase of an encrypted key."""

    @classmethod
    def find(
        cls,
        url: str,
        *,
        config_dir: str | os.PathLike[str] | None,
        state_dir: str | os.PathLike[str] | None,
        passphrase: PassphraseSource | None = None,
        secrets_dir: str | os.PathLike[str] | None = None,
        key_fd: int | None = None,
    ) -> "StorePlace":
        """Find the files of a store, and refuse a store that lies among its own keys.

        The passphrase is looked for only when an encrypted key is opened: this one, or else the
        one that the environment names.

        Raises:
            UrlInvalid: The URL names no store on disk.
            StoreMisplaced: The store lies in the configuration or state directory.
        """
        settings = load_settings(
            config_dir=config_dir, state_dir=state_dir, secrets_dir=secrets_dir, key_fd=key_fd
        )
        parsed = StoreUrl.parse(url)
        if not parsed.backend.outlives_process:
            raise UrlInvalid(
                f"store {url!r}: expected a store on disk, found one in memory",
                hint="memory: needs no set-up and keeps nothing; open it with open_store.",
            )
        files = StoreFiles.find(settings, parsed)
        files.check_placement()
        return cls(parsed, files, settings, unlocking(passphrase))

    def target(self) -> str:
        """Where the store lies, with no link on the way.

        Raises:
            NotTrusted: The URL leads elsewhere than it did.
        """
        return self.files.target()

    def directory(self) -> Path:
        """The directory that is the store's: itself, or that of its file, which gets others beside.

        Raises:
            NotTrusted: The URL leads elsewhere than it did.
            UsageError: The store does not lie on this machine.
        """
        if self.url.path is None:
            raise UsageError(
                f"store {self.url}: expected a store on this machine, found one elsewhere",
                hint="Leave --group out: users of this machine share files, and here are none.",
            )
        path = Path(self.target())
        return path.parent if self.url.backend.lies_as == "file" else path

    def make_secret(self) -> None:
        """Make the secret that keys the anchor's slots, unless there is one."""
        self.files.ensure_secret(os.urandom)

    def parts(
        self,
        *,
        pin: TrustPin,
        signer: SigningKey | None,
        namespace: str,
        registry: Registry | None = None,
        read_only: bool = False,
        create: bool = False,
        on_event: OnEvent | None = None,
    ) -> StoreParts:
        """Open anchor and backend.

        Raises:
            KeyMissing: The secret that keys the anchor's slots is gone.
            NotTrusted: The URL leads elsewhere than it did.
            RolledBack: There is no file to open where the anchor has seen a store.
        """
        target = self.target()
        shared = self.files.group()
        group = None if shared is None else shared.gid
        secret = self.files.secret()
        anchor = LocalAnchor(
            self.files.anchor_directory(pin.store),
            store=pin.store.raw,
            key=hmac.digest(secret, b"sealpoint anchor file", "sha256"),
            read_only=read_only,
            group=group,
        )
        try:
            if self.url.is_vacant(target) and (
                self.files.is_initialised() or anchor.get(store_slot(secret)) is not None
            ):
                raise RolledBack(
                    f"store {self.url}: expected the store that was here, found no file",
                    hint="Bring the newest copy back, or name the new place with sealpoint trust "
                    f"move. To give the store up for good, move {self.files.directory} away.",
                )
            storage = self.url.open(target, create=create, read_only=read_only, group=group)
        except BaseException:
            anchor.close()
            raise
        return StoreParts(
            storage=storage,
            anchor=anchor,
            pin=pin,
            secret=secret,
            signer=signer,
            registry=Registry() if registry is None else registry,
            namespace=namespace,
            read_only=read_only,
            now=now,
            random_bytes=os.urandom,
            on_event=on_event,
            on_roster=None if read_only else self._keep_roster,
        )

    def _keep_roster(self, core: Core, chain: StoreChain) -> None:
        self.files.keep_roster(chain.seq, chain.hashes[-1], lambda: copy_roster(core, chain))

    def root_signers(self, root: Root) -> list[PrivateKey]:
        """The private keys of a root that are on this machine.

        Raises:
            KeyLocked: One is encrypted, and the passphrase is missing or does not open it.
        """
        # By what the files say, so that no other key needs its passphrase; opening proves it.
        names = [
            name
            for name in self.files.key_names()
            if self.files.key_facts(name).public in root.keys
        ]
        return [self.files.signer(name, self.unlock) for name in names]

    def signer(self, identity: str) -> PrivateKey:
        """The private key of an identity.

        Raises:
            KeyMissing: It is not on this machine.
            KeyLocked: It is encrypted, and the passphrase is missing or does not open it.
            NotTrusted: There is no pin either: nothing is known about this store.
        """
        try:
            return self.files.signer(identity, self.unlock)
        except KeyMissing:
            self.files.pin()
            raise

    def own_key(self, identity: str) -> PrivateKey:
        """The same, from the descriptor that the settings name if they do."""
        if self.settings.key_fd is None:
            return self.signer(identity)
        return self.files.key_from_descriptor(self.settings.key_fd, identity, self.unlock)

    def pin(self, trust: Trust | None) -> TrustPin:
        """The pin that the caller brings along, or else the one that the settings lead to.

        Raises:
            NotTrusted: There is none.
            KeyFileUnsafe: Others can change it.
        """
        if trust is not None:
            return read_pin(trust)
        if self.settings.trust_fd is not None:
            return read_pin_descriptor(self.settings.trust_fd)
        return self.files.pin()


def identity_of(
    signer: PrivateKey, roles: tuple[Role, ...], *, person: str, namespaces: tuple[str, ...]
) -> Identity:
    """A roster's line for a key."""
    key = RosterKey(scheme="ed25519", public=str(signer.public))
    return Identity(
        name=signer.name, person=person, roles=roles, namespaces=namespaces, keys=(key,)
    )


def read_pin(trust: Trust) -> TrustPin:
    """A pin that the caller brings along: itself, the path of its file, or a descriptor.

    Raises:
        NotTrusted: The file is missing or no pin.
        KeyFileUnsafe: Others can change it.
    """
    if isinstance(trust, TrustPin):
        return trust
    return read_pin_descriptor(trust) if isinstance(trust, int) else read_pin_file(Path(trust))
