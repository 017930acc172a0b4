# SPDX-License-Identifier: Apache-2.0
"""Administration of a store: one object with the tasks of people, by noun.

```python
import sealpoint

admin = sealpoint.admin("sqlite:///agents.db")
admin.keys.create("billing")
admin.keys.add("billing", person="alice", roles=["writer"], namespaces=["billing"])
admin.policy.apply("team")
```

Nothing stays open: every call opens the store that the pin on this machine vouches for, and closes
it again.
"""

from collections.abc import Callable, Collection, Sequence

from sealpoint import store
from sealpoint.api._anchor import AnchorAdmin
from sealpoint.api._doctor import diagnose
from sealpoint.api._keys import KeyAdmin
from sealpoint.api._move import MovedStore, MoveProgress, move_store
from sealpoint.api._policy import PolicyAdmin
from sealpoint.api._roster import RosterAdmin
from sealpoint.api._store_location import Directory, StoreLocation
from sealpoint.api._trust import TrustAdmin
from sealpoint.api.checks import Diagnosis
from sealpoint.config import PassphraseSource, PasswordSource
from sealpoint.store import AcceptedRestore, RestorePlan

_Progress = Callable[[int, int], object]


class Admin:
    """The return value of `sealpoint.admin`."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location
        self.keys = KeyAdmin(location)
        """Keys and identities: create, add, list, rotate, revoke."""
        self.roster = RosterAdmin(location)
        """The root, pools, the quorum for restores, and copies of the roster."""
        self.trust = TrustAdmin(location)
        """The pin of this machine: export, import, and a store that was moved."""
        self.policy = PolicyAdmin(location)
        """The policy in force, and who can approve its requests."""
        self.anchor = AnchorAdmin(location)
        """The anchor compared with the store, and adoption."""
        self.restore = RestoreAdmin(location)
        """Recovering from a backup."""

    def __repr__(self) -> str:
        return f"<Admin of {self._location.url}>"

    def doctor(
        self, *, namespace: str = "default", identity: str | None = None, quick: bool = False
    ) -> Diagnosis:
        """Return the facts about a store on this machine, and check how it is set up.

        Writes nothing, and opens no private key. A line that cannot be checked is a finding.

        Args:
            namespace: The namespace whose policy, approvers and threads to check.
            identity: The identity that would open the store: checks that its key is here and safe.
            quick: Only check what keeps the store from being used here, and read no thread.
        """
        return diagnose(self._location, namespace, identity=identity, quick=quick)

    def move_to(
        self,
        url: str,
        *,
        password: PasswordSource | None = None,
        progress: Callable[[MoveProgress], object] | None = None,
    ) -> MovedStore:
        """Move the store to another backend or place, with every byte and signature.

        Both sides are verified completely. Stop the workers first. An interrupted move can be
        continued; the source is not changed, and is not trusted here afterwards.

        Args:
            url: The target: an empty place, or one where a move of this store was started.
            password: The password of a database there, as for `open_store`.
            progress: Called with the progress so far.

        Raises:
            Tampered: The data is not what was written, or a process saved during the move.
            StoreExists: The target has other data.
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
        config_dir: The directory of keys and pin, instead of the user's configuration directory.
        state_dir: The directory of the anchor, instead of the user's state directory.
        secrets_dir: The directory of a mounted secret, as for `open_store`.
        passphrase: The passphrase of encrypted keys, as for `open_store`. New keys get the
            `new_passphrase` of the call that makes them.
        password: The password of a database, as for `open_store`.
        anchor_password: The password of a shared anchor's database.

    Raises:
        UrlInvalid: The URL names no store on disk.
        StoreMisplaced: The store is in the configuration or state directory.
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
    """`admin.restore`: show the losses of a restored store, and accept it.

    A plan only reads. Accepting needs the root's private keys on this machine, or those of as many
    operators as the roster requires, and the newest roster (`admin.roster.import_copy`).
    """

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def plan(self, *, progress: _Progress | None = None) -> RestorePlan:
        """Show what accepting a restored store would keep and lose. Writes nothing, needs no key.

        Args:
            progress: Called after each thread with the number of finished threads and the total.

        Raises:
            RolledBack: The store chain is older than the anchor has seen: import the roster first.
            Tampered, NotTrusted, Forked, Unanchored: The store chain does not verify.
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
        """Accept a restored store as a plan shows it, and record that for all machines.

        Stop the workers first: an entry that a process saves in the meantime does not count, and is
        reported. Entries that the plan shows after the kept ones are removed from the store.

        The first execution of a thread that lost entries needs its own decision (the rule
        `after-restore`), unless the thread is released here: then it resumes from exactly the entry
        that was kept, unless another rule prevents it. `plan.released(release)` lists the threads
        that would be released. A thread that was paused is never released, and one whose pause is
        lost stays paused until an operator pauses or unpauses it.

        Args:
            plan: The result of `plan`. If the store has changed since, nothing is written.
            reason: Why; it is recorded on the store chain.
            release: The cut threads that may resume: True for all of them, or names, or ids in
                hexadecimal. Recorded in the same entry.
            identities: Operators whose keys are here, if the roster lets a quorum of them decide;
                without any, the root's keys that are here sign.
            progress: Called after each thread with the number of finished threads and the total.

        Raises:
            UsageError: There is no reason, or nothing to accept; or a thread to release is not cut,
                or was paused.
            HeadMoved: The store no longer matches the plan; nothing was written.
            KeyMissing: Too few root keys, or operators of different persons, are here.
            KeyLocked: A key is encrypted, and the passphrase is missing or wrong.
            RolledBack: The store chain is older than the anchor has seen: import the roster first.
            Tampered, NotTrusted, Forked, Unanchored: The store chain does not verify.
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
