# SPDX-License-Identifier: Apache-2.0
"""Moving a store to another backend: everything is verified, every byte and signature stays.

The source is verified first, then copied, then the target is verified in the same way, against the
same anchor: a copy that lacks an anchored entry is refused. Only then do pin, keys and anchor
belong to the new URL. Until that last step nothing changes for any user, and an interrupted move
can be continued. The source is not changed, and is no longer trusted here.

Stop the workers during the move. If a worker continues to write to the source, the target is behind
the anchor, and the move ends with an error; after the move, the anchor refuses that worker.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from sealpoint.api._store_location import StoreLocation
from sealpoint.audit import Report, verify_store
from sealpoint.config import PasswordSource, StoreUrl, store_password
from sealpoint.errors import StoreExists, Tampered, UsageError
from sealpoint.signing import TrustPin
from sealpoint.store import CopiedStore, Core, copy_store


class MoveProgress(NamedTuple):
    """The progress of a move."""

    step: str
    """`verify the source`, `copy` or `verify the target`."""
    done: int
    """The number of finished threads."""
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedStore:
    """The result of a move."""

    url: str
    """The new URL of the store."""
    pin: TrustPin
    copied: CopiedStore
    entries: int
    """How many entries were verified there."""


def move_store(
    location: StoreLocation,
    url: str,
    *,
    password: PasswordSource | None = None,
    progress: Callable[[MoveProgress], object] | None = None,
) -> MovedStore:
    """Move a store to the place of another URL.

    Raises:
        Tampered: Data at the source, or at the target after the copy, is not what was written, or
            the target lacks an entry that the anchor has seen.
        StoreExists: There is another store at the target, or a pin for its URL.
        UsageError: Source and target are one place.
        StorageUnavailable: Either cannot be used; the move can be started again.
    """
    target = StoreLocation.find(
        url,
        config_dir=location.settings.config_dir,
        state_dir=location.settings.state_dir,
        secrets_dir=location.settings.secrets_dir,
        password=password,
    )
    _require_apart(location.url, target)
    tell = (lambda _: None) if progress is None else progress
    pin = location.files.pin()
    with location.open_core(read_only=True) as core:
        _require_sound(core, "verify the source", tell, f"store {location.url}")
        storage = target.url.open(
            target.url.target(),
            create=True,
            read_only=False,
            password=store_password(password),
        )
        try:
            copied = copy_store(
                core,
                storage,
                lambda done: tell(MoveProgress("copy", done.threads, done.threads_total)),
            )
            moved = Core(replace(core.parts, storage=storage))
            report = _require_sound(moved, "verify the target", tell, f"store {target.url}")
        finally:
            storage.close()
    target.files.move_from(location.files)
    return MovedStore(url=str(target.url), pin=pin, copied=copied, entries=report.entries)


def _require_apart(source: StoreUrl, target: StoreLocation) -> None:
    if source == target.url:
        raise UsageError(f"store {source}: it is to move, and is there already")
    if target.files.has_pin():
        raise StoreExists(
            f"store {target.url}: this machine has a pin of a store there already",
            hint="If a move there came to its end, there is nothing left to do: use that URL. Else "
            "choose another place.",
        )


def _require_sound(
    core: Core, step: str, tell: Callable[[MoveProgress], object], what: str
) -> Report:
    """Verify everything.

    Raises:
        Tampered: Data is not what was written, or is missing.
    """
    report = verify_store(
        core, lambda done: tell(MoveProgress(step, done.threads, done.threads_total))
    )
    refused = [finding for finding in report.findings if finding.refuses]
    if refused:
        raise Tampered(
            f"{what}: {len(refused)} findings, the first of thread {refused[0].thread[:12]}: "
            f"{refused[0].message}",
            hint="Nothing was moved. If workers were still saving, stop them and run it again; "
            "else look at all of it: sealpoint verify",
        )
    return report
