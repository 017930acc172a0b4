# SPDX-License-Identifier: Apache-2.0
"""The result of a full verification."""

from dataclasses import dataclass

from sealpoint.errors import SealpointError
from sealpoint.ledger import KINDS, STORE_CHAIN, Entry, StoreChain, is_lost
from sealpoint.signing import STOPPED
from sealpoint.store import EXPIRY_WARNING, Core
from sealpoint.world import json_form

UNJUSTIFIED = "unjustified"
"""The code of a finding about a resume or handoff that the policy of its time did not allow, or
about an unreadable entry."""

QUESTION_PASSED = "question-passed"
"""The code of a note about a run that continued past its own question in the same session. The code
of the worker decides that, so nothing is refused because of it."""


CALLED_IDEMPOTENT = "called-idempotent"
"""The code of a note about a run that continued after another identity's answer without a question,
because its worker said that doing it again is harmless. Only the application knows that."""


def describe_unreadable(entry: Entry, data: bytes | None) -> str:
    """Describe an entry whose body cannot be read, and on which nothing depends."""
    kind, writer = entry.header.kind, repr(entry.writer)
    counts = "it counts for nothing" if KINDS[kind].about_requests else "it counts all the same"
    if data is None:
        found = f"no body; {writer} wrote the entry, and nobody erased the body"
    elif is_lost(entry.header, data):
        found = f"another body than the one that {writer} sealed"
    else:
        found = f"what {writer} sealed and nobody can read"
    return f"entry {entry.seq}: expected the fields of a {kind.word}, found {found}; {counts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it was written, or that deserves a look."""

    code: str
    """The code of the error that a reader would get; `time` for a clock that went back,
    `key-expiry` for a key that has expired or soon will, `question-passed` for a run that continued
    past its own question, `called-idempotent` for a worker who said that repeating what another
    identity did with an answer is harmless, and `unjustified` for a resume or handoff that the
    policy of its time did not allow, or for an unreadable entry."""
    thread: str
    """The thread's id in hexadecimal; zeros for the store chain."""
    name: str = ""
    """The name in the thread's first entry, if readable: only a claim if that was tampered with."""
    message: str
    refuses: bool = True
    """Whether a reader would be refused; otherwise the finding only deserves a look."""

    def as_dict(self) -> dict[str, str | bool]:
        """The JSON form."""
        return json_form(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a verification."""

    threads: int
    threads_total: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a full verification."""

    ok: bool
    """Whether no finding refuses a read, and every resume and handoff was justified."""
    entries: int
    """The number of verified entries."""
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return json_form(self)


_CODE = "key-expiry"


def key_findings(core: Core, chain: StoreChain) -> list[Finding]:
    """Return findings about missing or edited lists, and about keys that expired or soon will."""
    return [*_lists(chain), *_expiries(core, chain)]


def _lists(chain: StoreChain) -> list[Finding]:
    named = [(f"revoked key {key[:12]}", digest) for key, digest in chain.roster.cutoffs.items()]
    for restore in chain.restores.all:
        named += [(f"restore in entry {restore.seq}", each) for each in restore.lists]
    found = []
    for what, digest in named:
        try:
            chain.lists.get(digest)
        except SealpointError as error:
            message = f"{what}: {error.message}"
            found.append(Finding(code=error.code, thread=STORE_CHAIN.hex(), message=message))
    return found


def _expiries(core: Core, chain: StoreChain) -> list[Finding]:
    now, roster = core.now(), chain.roster
    found = []
    for key, (identity, _) in roster.holders().items():
        expires = roster.expiries.get(key.raw.hex())
        if expires is None or now < expires - EXPIRY_WARNING:
            continue
        who = f"key {key.short()} of {identity.name!r}"
        if expires == STOPPED:
            message = f"{who} was stopped and has no cutoff yet: repeat what was ending it"
        elif now >= expires:
            message = f"{who} expired at {expires.isoformat()}: it writes nothing any more"
        else:
            message = f"{who} expires at {expires.isoformat()}: rotate it before"
        found.append(Finding(code=_CODE, thread=STORE_CHAIN.hex(), message=message, refuses=False))
    return found
