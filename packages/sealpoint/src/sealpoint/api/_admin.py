# SPDX-License-Identifier: Apache-2.0
"""Administration of a store: one object, by noun, for what people do around it.

```python
import sealpoint

admin = sealpoint.admin("sqlite:///agents.db")
admin.keys.create("billing")
admin.keys.add("billing", person="alice", roles=["writer"], namespaces=["billing"])
admin.policy.apply("team")
```

Nothing is held open: every call opens the store that the pin on this machine vouches for, and
closes it again.
"""

from collections.abc import Callable, Collection, Sequence

from sealpoint import store
from sealpoint.api._anchor import AnchorAdmin
from sealpoint.api._doctor import diagnose
from sealpoint.api._keys import KeyAdmin
from sealpoint.api._location import Directory, StoreLocation
from sealpoint.api._move import MovedStore, MoveProgress, move_store
from sealpoint.api._policy import PolicyAdmin
from sealpoint.api._roster import RosterAdmin
from sealpoint.api._status import StoreStatus, check_status
from sealpoint.api._trust import TrustAdmin
from sealpoint.api.checks import Diagnosis
from sealpoint.config import PassphraseSource, PasswordSource
from sealpoint.store import AcceptedRestore, RestorePlan

_Progress = Callable[[int, int], object]


class Admin:
    """What `sealpoint.admin` gives."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location
        self.keys = KeyAdmin(location)
        """Keys and identities: create, add, list, rotate, revoke."""
        self.roster = RosterAdmin(location)
        """The root, pools, the quorum for restores, and copies of the roster."""
        self.trust = TrustAdmin(location)
        """The pin of this machine: export, import, and a store that was moved."""
        self.policy = PolicyAdmin(location)
        """The policy in force, and who can approve what it asks for."""
        self.anchor = AnchorAdmin(location)
        """Where the anchor stands against the store, and adoption."""
        self.restore = RestoreAdmin(location)
        """Coming back from a backup."""

    def __repr__(self) -> str:
        return f"<Admin of {self._location.url}>"

    def status(self, *, identity: str | None = None, namespace: str = "default") -> StoreStatus:
        """Say how a store stands on this machine. Writes nothing, and opens no private key.

        Args:
            identity: Who would open it: that their key is here, and safe, is looked at too.
            namespace: Whose policy and approvers to tell.
        """
        return check_status(self._location, identity, namespace)

    def doctor(self, *, namespace: str = "default") -> Diagnosis:
        """Say whether a store is set up as production asks for, line by line of the checklist.

        Writes nothing, and opens no private key. What cannot be looked at is a finding.

        Args:
            namespace: Whose policy, approvers and threads to look at.
        """
        return diagnose(self._location, namespace)

    def move_to(
        self,
        url: str,
        *,
        password: PasswordSource | None = None,
        progress: Callable[[MoveProgress], object] | None = None,
    ) -> MovedStore:
        """Move the store to another backend or place, with every byte and signature.

        Both sides are verified whole. Stop the workers first. A move that was interrupted goes on
        where it ended; the source is left as it is, and is not trusted here afterwards.

        Args:
            url: Where to: an empty place, or one that a move of this store was begun to.
            password: What a database there asks for, as for `open_store`.
            progress: Called with how far it has come.

        Raises:
            Tampered: Something is not as it was written, or somebody saved meanwhile.
            StoreExists: There is something else at the target.
            StorageUnavailable: Either place cannot be used.
        """
        return move_store(self._location, url, password=password, progress=progress)


def admin(
    url: str,
    *,
    config_dir: Directory = None,
    state_dir: Directory = None,
    secrets_dir: Directory = None,
    passphrase: PassphraseSource | None = None,
    password: PasswordSource | None = None,
    anchor_password: PasswordSource | None = None,
) -> Admin:
    """Administer a store: its keys, roster, trust, policy, anchor and restores.

    Args:
        url: The store.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        secrets_dir: The directory of a mounted secret, as for `open_store`.
        passphrase: What opens keys that are encrypted, as for `open_store`. Keys that are made get
            the `new_passphrase` of the call that makes them.
        password: What a database asks for, as for `open_store`.
        anchor_password: What that of a shared anchor asks for.

    Raises:
        UrlInvalid: The URL names no store on disk.
        StoreMisplaced: The store lies in the configuration or state directory.
    """
    return Admin(
        StoreLocation.find(
            url,
            config_dir=config_dir,
            state_dir=state_dir,
            secrets_dir=secrets_dir,
            passphrase=passphrase,
            password=password,
            anchor_password=anchor_password,
        )
    )


class RestoreAdmin:
    """`admin.restore`: what was lost, and accepting it.

    A plan only looks. Accepting needs the root's private keys on this machine, or those of as many
    operators as the roster asks for, and the newest roster (`admin.roster.import_copy`).
    """

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def plan(self, *, progress: _Progress | None = None) -> RestorePlan:
        """Say what accepting a restored store would keep and lose. Writes nothing, needs no key.

        Args:
            progress: Called after each thread with how many are done, and how many there are.

        Raises:
            RolledBack: The store chain is older than the anchor has seen: import the roster first.
            Tampered, NotTrusted, Forked, Unanchored: The store chain cannot be believed.
        """
        with self._location.open_core(read_only=True) as core:
            return store.plan_restore(core, progress)

    def accept(
        self,
        plan: RestorePlan,
        *,
        reason: str,
        release: bool | Collection[str] = False,
        identities: Sequence[str] = (),
        progress: _Progress | None = None,
    ) -> AcceptedRestore:
        """Accept a restored store as a plan shows it, and record that for everybody.

        Stop the workers first: what somebody saves meanwhile does not count, and is reported.
        Entries that the plan shows to lie beyond what is kept are taken out of the store.

        The first execution of a thread that lost something is a decision of its own (the rule
        `after-restore`), unless it is released here: then it goes on from exactly the entry that
        was kept, if nothing else stands against it. `plan.released(release)` says which threads
        these are. A thread that was paused is never released, and one whose pause is lost stays
        paused until an operator pauses or unpauses it.

        Args:
            plan: What `plan` gave. If the store has changed since, nothing is written.
            reason: Why; it is recorded on the store chain.
            release: The cut threads that may go on: True for all of them, or names, or ids in
                hexadecimal. Recorded in the same entry.
            identities: Operators whose keys are here, if the roster lets a quorum of them decide;
                without any, the root's keys that are here sign.
            progress: Called after each thread with how many are done, and how many there are.

        Raises:
            UsageError: There is no reason, or nothing to accept; or a thread to release is not cut,
                or was paused.
            HeadMoved: The store is no longer what the plan shows; nothing was written.
            KeyMissing: Too few root keys, or operators of different persons, are here.
            KeyLocked: A key is encrypted, and the passphrase is missing or does not open it.
            RolledBack: The store chain is older than the anchor has seen: import the roster first.
            Tampered, NotTrusted, Forked, Unanchored: The store chain cannot be believed.
        """
        location = self._location
        operators = [location.signer(name) for name in identities]
        with location.open_core() as core:
            roots = []
            if plan.losses and not operators:
                roots = location.root_signers(core.renewed_trust().root)
            return store.accept_restore(
                core,
                plan,
                reason,
                release=release,
                roots=roots,
                operators=operators,
                progress=progress,
            )
