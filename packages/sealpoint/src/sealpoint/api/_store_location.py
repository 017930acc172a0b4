# SPDX-License-Identifier: Apache-2.0
"""From a URL to the parts of a store: backend, anchor, pin and keys."""

import hmac
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sealpoint import config
from sealpoint.anchor import AnchorUrl, SharedAnchor
from sealpoint.anchor.local import LocalAnchor
from sealpoint.codec import Registry
from sealpoint.config import (
    PassphraseSource,
    PasswordSource,
    Settings,
    StoreFiles,
    StoreUrl,
    load_settings,
    open_shared_anchor,
    read_pin_descriptor,
    read_pin_file,
    store_password,
    unlocking,
)
from sealpoint.errors import AnchorUnavailable, KeyMissing, RolledBack, UrlInvalid, UsageError
from sealpoint.ids import StoreId
from sealpoint.ledger import StoreChain
from sealpoint.signing import (
    Identity,
    PrivateKey,
    Role,
    Root,
    RosterDocument,
    RosterKey,
    SigningKey,
    TrustPin,
    Unlock,
)
from sealpoint.store import (
    Core,
    Event,
    StoreParts,
    append_roster,
    copy_roster,
    list_positions_again,
    require_roots,
    store_slot,
)

OnEvent = Callable[[Event], object]
Trust = TrustPin | str | os.PathLike[str] | int
Directory = str | os.PathLike[str] | None
_SETTLE_SECONDS = 0.2


now = partial(datetime.now, UTC)
"""The clock of this machine."""


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """A store on this machine: its place, and the files that belong to it."""

    url: StoreUrl
    files: StoreFiles
    settings: Settings
    unlock: Unlock = field(repr=False)
    """Returns the passphrase of an encrypted key."""
    password: Callable[[], str] | None = field(default=None, repr=False)
    """Returns the password of a database."""
    anchor_password: Callable[[], str] | None = field(default=None, repr=False)
    """Returns the password of the shared anchor's database."""

    @classmethod
    def find(
        cls,
        url: str | StoreUrl,
        *,
        config_dir: Directory,
        state_dir: Directory,
        passphrase: PassphraseSource | None = None,
        secrets_dir: Directory = None,
        key_fd: int | None = None,
        password: PasswordSource | None = None,
        anchor_password: PasswordSource | None = None,
    ) -> "StoreLocation":
        """Find the files of a store, and refuse a store that is stored among its own keys.

        The passphrase is needed only when an encrypted key is opened: this one, or otherwise the
        one that the environment names.

        Raises:
            UrlInvalid: The URL names no store on disk.
            StoreMisplaced: The store is in the configuration or state directory.
        """
        settings = load_settings(
            config_dir=config_dir, state_dir=state_dir, secrets_dir=secrets_dir, key_fd=key_fd
        )
        parsed = url if isinstance(url, StoreUrl) else StoreUrl.parse(url)
        if not parsed.backend.outlives_process:
            raise UrlInvalid(
                f"store {str(url)!r}: this needs a store on disk, and that one lives in memory",
                hint="memory: needs no setup and keeps nothing; open it with open_store.",
            )
        files = StoreFiles.find(settings, parsed)
        files.check_placement()
        return cls(
            parsed,
            files,
            settings,
            unlocking(passphrase),
            store_password(password),
            config.anchor_password(anchor_password),
        )

    def is_vacant(self) -> bool:
        """Whether the store's place is empty.

        Raises:
            NotTrusted: The URL leads to another place than before.
            StorageUnavailable: This cannot be determined.
        """
        return self.url.is_vacant(self.target(), self.password)

    def target(self) -> str:
        """Return the store's place, without links on the way.

        Raises:
            NotTrusted: The URL leads to another place than before.
        """
        return self.files.target()

    def directory(self) -> Path:
        """Return the store's directory: itself, or that of its file, which may get more files.

        Raises:
            NotTrusted: The URL leads to another place than before.
            UsageError: The store is not on this machine.
        """
        if self.url.path is None:
            raise UsageError(
                f"store {self.url}: a group shares a store on this machine, and this one is "
                "elsewhere",
                hint="Leave --group out: users of this machine share files, and here are none.",
            )
        path = Path(self.target())
        return path.parent if self.url.backend.lies_as == "file" else path

    def shared_paths(self) -> tuple[list[Path], list[Path]]:
        """Return the directories and files that a group shares.

        Raises:
            NotTrusted: There is no pin, or the URL leads to another place than before.
            UsageError: The store is not on this machine.
        """
        anchor = self.files.anchor_directory(self.files.pin().store)
        files = [anchor / "anchor.slots"]
        if self.url.backend.lies_as == "file":
            target = self.target()
            files += [Path(target), *(Path(target + end) for end in self.url.backend.beside)]
        return [self.files.state_dir, anchor.parent, anchor, self.directory()], files

    def make_secret(self) -> None:
        """Make the secret that keys the anchor's slots, unless it exists or an anchor is shared."""
        if self.files.shared_anchor.url() is None:
            self.files.ensure_secret(os.urandom)

    def open_shared_anchor(
        self, store: StoreId, *, url: AnchorUrl | None = None, read_only: bool, create: bool
    ) -> SharedAnchor | None:
        """Open the shared anchor; None if this store shares none.

        Args:
            store: The store.
            url: The URL of an anchor that is not declared yet.
            read_only: Write nothing.
            create: Make its tables if they are missing.

        Raises:
            AnchorUnavailable: It cannot be used.
        """
        url = self.files.shared_anchor.url() if url is None else url
        if url is None:
            return None
        return open_shared_anchor(
            url,
            store=store.raw,
            password=self.anchor_password,
            read_only=read_only,
            create=create,
        )

    def _secret(self, shared: SharedAnchor | None, *, read_only: bool) -> bytes:
        """Return the secret that keys the slots: the one that this machine first saw.

        Raises:
            KeyMissing: It is missing.
            AnchorUnavailable: The shared anchor has none, or another one.
        """
        if shared is None:
            return self.files.secret()
        found, url = shared.secret(), self.files.shared_anchor.url()
        if found is None:
            raise AnchorUnavailable(
                f"anchor {url}: it knows nothing of store {self.url}",
                hint="It may have been put back to a time before. Where the newest has been seen: "
                f"sealpoint anchor join {url} --reason TEXT",
            )
        if self.files.has_secret():
            if not hmac.compare_digest(self.files.secret(), found):
                raise AnchorUnavailable(
                    f"anchor {url}: it has another secret of the slots of store {self.url} than "
                    "this machine first saw",
                    hint="An attacker may have put another anchor in its place: under its secret, "
                    "no thread would be known. Bring the database of the anchor back.",
                )
        elif not read_only:
            self.files.take_secret(found)
        return found

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
            KeyMissing: The secret that keys the anchor's slots is missing.
            NotTrusted: The URL leads to another place than before.
            RolledBack: The store is missing, although the anchor has seen it.
        """
        target = self.target()
        gid = self.files.gid()
        with ExitStack() as opened:
            other = self.open_shared_anchor(pin.store, read_only=read_only, create=create)
            if other is not None:
                opened.callback(other.close)
            secret = self._secret(other, read_only=read_only)
            anchor = self.open_local_anchor(pin.store, secret, gid=gid, read_only=read_only)
            opened.callback(anchor.close)
            if self.url.is_vacant(target, self.password) and (
                self.files.is_initialized()
                or anchor.get(store_slot(secret)) is not None
                or (other is not None and other.get(store_slot(secret)) is not None)
            ):
                raise self._gone()
            storage = self.url.open(
                target, create=create, read_only=read_only, group=gid, password=self.password
            )
            opened.pop_all()
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
            shared_anchor=other,
        )

    def _gone(self) -> RolledBack:
        """Return the error for a known store that is missing."""
        what = f"store {self.url}: this machine knows the store, and"
        hint = (
            f"Bring the newest copy back, or if it was moved: sealpoint trust move {self.url} "
            f"--store NEW-URL. To give the store up for good, move {self.files.directory} away."
        )
        if self.url.path is not None:
            return RolledBack(f"{what} its file is gone", hint=hint)
        return RolledBack(
            f"{what} this login sees nothing of it",
            hint="Does sealpoint doctor name row security? Then an administrator fixes it with "
            f"sealpoint provision postgres. Else the tables are empty. {hint}",
        )

    def open_local_anchor(
        self, store: StoreId, secret: bytes, *, gid: int | None, read_only: bool = False
    ) -> LocalAnchor:
        """Open the anchor of this machine or of a group, whose slots are keyed by a secret.

        Raises:
            AnchorUnavailable: Its file is damaged, or was written under another secret.
        """
        return LocalAnchor(
            self.files.anchor_directory(store),
            store=store.raw,
            key=hmac.digest(secret, b"sealpoint anchor file", "sha256"),
            read_only=read_only,
            group=gid,
        )

    def _keep_roster(self, core: Core, chain: StoreChain) -> None:
        self.files.keep_roster(chain.seq, chain.hashes[-1], lambda: copy_roster(core, chain))

    @contextmanager
    def open_core(
        self,
        *,
        signer: SigningKey | None = None,
        namespace: str = "default",
        read_only: bool = False,
        create: bool = False,
    ) -> Iterator[Core]:
        """Open the store that the pin here vouches for, and close it at the end of the block.

        Raises:
            NotTrusted: There is no pin for this store here.
        """
        parts = self.parts(
            pin=self.files.pin(),
            signer=signer,
            namespace=namespace,
            read_only=read_only,
            create=create,
        )
        try:
            yield Core(parts)
        finally:
            parts.close()

    def root_signers(self, root: Root) -> list[PrivateKey]:
        """Return the private keys of a root that are on this machine.

        Raises:
            KeyLocked: One is encrypted, and the passphrase is missing or wrong.
        """
        # Chosen by the claims of the files, so no other key needs its passphrase; opening proves
        # it.
        names = [
            name
            for name in self.files.keys.names()
            if self.files.keys.facts(name).public in root.keys
        ]
        return [self.files.keys.signer(name, self.unlock) for name in names]

    def enough_root_signers(self, root: Root) -> list[PrivateKey]:
        """Return as many private keys of a root as it requires.

        Raises:
            KeyMissing: There are fewer on this machine.
            KeyLocked: One is encrypted, and the passphrase is missing or wrong.
        """
        return require_roots(root, self.root_signers(root))

    def append_roster(
        self,
        core: Core,
        chain: StoreChain,
        document: RosterDocument,
        *,
        reason: str | None,
        blobs: Mapping[bytes, bytes] | None = None,
    ) -> StoreChain:
        """Put a roster in force, signed with the root's keys on this machine.

        Raises:
            KeyMissing, KeyLocked: They are not here, or do not open.
            HeadMoved: Another process changed the roster in between.
        """
        roots = self.enough_root_signers(chain.root)
        written = append_roster(core, chain, document, roots, reason=reason, blobs=blobs)
        core.written(written)
        if written.roster.positions is not None:
            list_positions_again(core, written, roots)
        return written

    def raise_pin_minimum(self, chain: StoreChain) -> None:
        """Let the pin of this machine name the roster and the root in force.

        If the anchor is lost, this machine still refuses an older store chain, which might lack the
        end of a key.
        """
        pin = self.files.pin()
        newer = pin.with_roster(chain.roster.seq).with_root(chain.root)
        if newer.encode() != pin.encode():
            self.files.write_pin(newer, replace=True)

    def signer(self, identity: str) -> PrivateKey:
        """Return the private key of an identity.

        Raises:
            KeyMissing: It is not on this machine.
            KeyLocked: It is encrypted, and the passphrase is missing or wrong.
            NotTrusted: There is no pin either: nothing is known about this store.
        """
        try:
            return self.files.keys.signer(identity, self.unlock)
        except KeyMissing:
            self.files.pin()
            raise

    def own_key(self, identity: str) -> PrivateKey:
        """Return the private key, from the descriptor in the settings if that is set."""
        if self.settings.key_fd is None:
            return self.signer(identity)
        return self.files.keys.signer_from_descriptor(self.settings.key_fd, identity, self.unlock)

    def pin(self, trust: Trust | None) -> TrustPin:
        """Return the caller's pin, or otherwise the one that the settings lead to.

        Raises:
            NotTrusted: There is none.
            KeyFileUnsafe: Others can change it.
        """
        if trust is not None:
            return read_pin(trust)
        if self.settings.trust_fd is not None:
            return read_pin_descriptor(self.settings.trust_fd)
        return self.files.pin()


def wait_between_looks() -> None:
    """Wait a moment, so that a running save can finish."""
    time.sleep(_SETTLE_SECONDS)


def identity_of(
    signer: PrivateKey, roles: tuple[Role, ...], *, person: str, namespaces: tuple[str, ...]
) -> Identity:
    """Return a roster's entry for a key."""
    key = RosterKey.of(signer.public)
    return Identity(
        name=signer.name, person=person, roles=roles, namespaces=namespaces, keys=(key,)
    )


def read_pin(trust: Trust) -> TrustPin:
    """Return the caller's pin: a pin, the path of its file, or a descriptor.

    Raises:
        NotTrusted: The file is missing or not a pin.
        KeyFileUnsafe: Others can change it.
    """
    if isinstance(trust, TrustPin):
        return trust
    return read_pin_descriptor(trust) if isinstance(trust, int) else read_pin_file(Path(trust))
