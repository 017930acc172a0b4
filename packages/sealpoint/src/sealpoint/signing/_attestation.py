# SPDX-License-Identifier: Apache-2.0
"""Attestations: the signed verdict of one person on one statement, and how to count them.

An attestation is detached: the writer of the entry that holds it vouches for nothing, and an
approver signs a digest, a verdict and a reason and nothing else, under any scheme. The roster
determines the scheme of a key; the scheme in the attestation must match and never chooses.

The count is of persons, not of keys or names, and does not depend on the order. It is independent
of policies: the gate decides how many approvals are needed, whether the statement still fits its
thread and whether it has expired. Empty means no: with nothing given, nothing counts.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, unique

import msgspec

from sealpoint.errors import Forged, NotTrusted, UsageError
from sealpoint.ids import KeyId
from sealpoint.limits import REASON_BYTES_MAX
from sealpoint.signing._keys import PublicKey
from sealpoint.signing._pae import STATEMENT_TYPE, pae
from sealpoint.signing._passkey import Passkey, PasskeyAssertion
from sealpoint.signing._remote_keys import SigningKey
from sealpoint.signing._root_and_roster import Identity, Role, Roster
from sealpoint.signing._statement import (
    Action,
    Statement,
    check_reason,
    fits,
    is_digest,
    is_hexadecimal,
)

ANSWERING = (Role.OPERATOR, Role.APPROVER)
"""The roles that let a person answer the question of a thread."""

_PROOF_DIGITS_MAX = 4096
_SHORT_DIGITS = 12
_VERDICTS = "approve, deny or break-glass"
_HINT = "Keys and roles are those of the newest roster: sealpoint keys list shows it."


@unique
class Verdict(StrEnum):
    """The verdict of a person on a statement."""

    APPROVE = "approve"
    DENY = "deny"
    BREAK_GLASS = "break-glass"
    """Let the request pass without the approvals that it needs; only for an operator whom the
    roster marks for this."""


class Attestation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One attestation on one statement, as an entry stores it; no part of it is verified."""

    scheme: str
    credential: str
    """The id of the key, in the digits that entries use for it."""
    statement: str
    """The digest of the statement."""
    verdict: Verdict
    reason: str
    proof: str
    """The signature, or the answer of an authenticator, in hexadecimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The counted verdicts on a statement; each person is in one of the first two, once.

    A person who broke the glass may also have approved or denied.
    """

    approved_by: tuple[str, ...] = ()
    """The identities whose approval counts, one for each person, in order."""
    denied_by: tuple[str, ...] = ()
    """The same for denials."""
    approvals: tuple[Attestation, ...] = field(default=(), compare=False)
    """The attestation of each identity that approved, in the same order."""
    broken_glass_by: tuple[str, ...] = ()
    """The identities that let the request pass without approvals, one per person, in order."""
    broken_glass: tuple[Attestation, ...] = field(default=(), compare=False)
    """The attestation of each of them, in the same order."""
    ignored: tuple[str, ...] = ()
    """Why each other attestation does not count, one sentence each, in order."""


def _message(statement: str, verdict: str, reason: str) -> bytes:
    """Return the signed bytes."""
    payload = {"statement": statement, "verdict": verdict, "reason": reason}
    return pae(STATEMENT_TYPE, msgspec.json.encode(payload))


def attest(signer: SigningKey, statement: str, verdict: Verdict, reason: str) -> Attestation:
    """Sign a verdict on a statement.

    Args:
        signer: The key of the person who gives the verdict.
        statement: The statement's digest.
        verdict: The verdict.
        reason: Why; it is signed too.

    Raises:
        UsageError: The digest or the verdict is invalid, or there is no reason.
    """
    _check_word(statement, verdict, reason)
    return Attestation(
        scheme=PublicKey.scheme,
        credential=signer.key,
        statement=statement,
        verdict=Verdict(verdict),
        reason=reason,
        proof=signer.sign(_message(statement, verdict, reason)).hex(),
    )


def challenge(statement: str, verdict: Verdict, reason: str) -> bytes:
    """Return the 32 bytes that a passkey must sign to give this verdict on a statement.

    They are the SHA-256 of the bytes that any other key signs.

    Args:
        statement: The statement's digest.
        verdict: The verdict.
        reason: Why; it is signed too.

    Raises:
        UsageError: The digest or the verdict is invalid, or there is no reason.
    """
    _check_word(statement, verdict, reason)
    return hashlib.sha256(_message(statement, verdict, reason)).digest()


def passkey_attestation(
    passkey: Passkey, statement: str, verdict: Verdict, reason: str, assertion: PasskeyAssertion
) -> Attestation:
    """Make the attestation of a person who used a passkey, after verifying the answer.

    Args:
        passkey: The passkey of the person who gives the verdict.
        statement: The statement's digest.
        verdict: The verdict.
        reason: Why; it is signed too.
        assertion: The answer to `challenge` of these three.

    Raises:
        UsageError: The digest or the verdict is invalid, or there is no reason.
        Forged: The passkey has not signed this.
    """
    passkey.verify_assertion(assertion, challenge(statement, verdict, reason))
    return Attestation(
        scheme=Passkey.scheme,
        credential=passkey.id.raw.hex(),
        statement=statement,
        verdict=Verdict(verdict),
        reason=reason,
        proof=assertion.encode().hex(),
    )


def _check_word(statement: str, verdict: Verdict, reason: str) -> None:
    """Check the parts of an attestation before signing."""
    if not is_digest(statement):
        raise UsageError(
            "attestation: the digest of a statement is 64 lower-case hexadecimal "
            "digits, and this is not"
        )
    if verdict not in tuple(Verdict):
        raise UsageError(f"attestation: the verdict must be {_VERDICTS}")
    check_reason(reason, "attestation")


def check_attestation(attestation: Attestation) -> None:
    """Refuse an attestation that no one can have signed, because a field is malformed.

    A caller may then handle the attestation as what it claims to be; this does not verify the
    claim.

    Raises:
        Forged: Statement, verdict, reason or proof is malformed.
        NotTrusted: It names no key.
    """
    by = _by(attestation)
    if not is_digest(attestation.statement) or attestation.verdict not in tuple(Verdict):
        raise Forged(f"{by}: expected {_VERDICTS} on the digest of a statement, found another text")
    if not fits(attestation.reason, REASON_BYTES_MAX):
        raise Forged(
            f"{by}: expected a reason of 1 to {REASON_BYTES_MAX} bytes, found an empty, "
            "longer or unprintable one"
        )
    if len(attestation.proof) > _PROOF_DIGITS_MAX:
        raise Forged(
            f"{by}: expected a proof of at most {_PROOF_DIGITS_MAX} digits, "
            f"found {len(attestation.proof)}"
        )
    if len(attestation.proof) % 2 or not is_hexadecimal(attestation.proof):
        raise Forged(f"{by}: expected a proof in lower-case hexadecimal digits")
    if not is_digest(attestation.credential):
        raise NotTrusted(
            f"{by}: expected the id of a key, found a text that is not one", hint=_HINT
        )


def verify_attestation(attestation: Attestation, roster: Roster) -> Identity:
    """Verify that the holder of a key signed this, by the given roster.

    `count` checks whether the holder may decide, and whether the key has expired.

    Returns:
        The identity that holds the key.

    Raises:
        NotTrusted: By this roster, no one holds the key, or it has another scheme.
        Forged: The key did not sign this, or no key would sign it.
    """
    # (1) Form and bounds, before anything is copied or computed.
    check_attestation(attestation)
    by = _by(attestation)
    # (2) The holder, by this roster; no one holds a key that has a cutoff.
    held = roster.attester(KeyId(bytes.fromhex(attestation.credential)))
    if held is None:
        found = (
            "one that was revoked" if attestation.credential in roster.cutoffs else "one unknown"
        )
        raise NotTrusted(f"{by}: expected a key of roster {roster.seq}, found {found}", hint=_HINT)
    identity, key = held
    # (3) The scheme is the roster's: data that comes with a proof never chooses one.
    if attestation.scheme != key.scheme:
        raise NotTrusted(
            f"{by}: expected scheme {key.scheme}, as roster {roster.seq} says", hint=_HINT
        )
    # (4) The proof.
    message = _message(attestation.statement, attestation.verdict, attestation.reason)
    key.verify(bytes.fromhex(attestation.proof), message)
    return identity


def _by(attestation: Attestation) -> str:
    """Return how messages name an attestation; they do not repeat an invalid key id."""
    credential = attestation.credential
    short = credential[:_SHORT_DIGITS] if is_digest(credential) else "without an id"
    return f"attestation by key {short}"


def count(
    attestations: Iterable[Attestation], *, statement: Statement, roster: Roster, now: datetime
) -> Tally:
    """Count the verdicts on a statement, by the given roster.

    An attestation counts if it is for this statement, verifies, its identity is an approver of the
    statement's namespace, its key has not expired, and its person did not make the request: neither
    the requester's person nor the statement's actor. A person counts once, and a person's denial
    outweighs the same person's approval, in any order. If the roster does not know who makes the
    request, no approval counts, since it could be their own.

    A denial by a person who makes the request counts: they may withdraw it, with any identity of
    the namespace and without being an approver.

    An answer to a question counts with the signature of its actor, an operator or approver.

    Only an operator of the namespace whom the roster marks for it can break the glass. This works
    for any requester, and only for a resume.

    Args:
        attestations: The attestations to count, in any order.
        statement: The statement that they should be about.
        roster: The newest roster.
        now: The later of the clock and the newest verified time of the thread, in UTC.
    """
    digest = statement.digest
    voices: dict[Verdict, dict[str, list[str]]] = {verdict: {} for verdict in Verdict}
    words: dict[tuple[Verdict, str], Attestation] = {}
    ignored: list[str] = []
    seen: set[Attestation] = set()
    for attestation in attestations:
        try:
            if attestation in seen:
                raise NotTrusted(f"{_by(attestation)}: it is there more than once and counts once")
            seen.add(attestation)
            identity = _require_counted(attestation, statement, digest, roster, now)
        except (Forged, NotTrusted) as exc:
            ignored.append(exc.message)
            continue
        verdict = Verdict(attestation.verdict)
        voices[verdict].setdefault(identity.person, []).append(identity.name)
        words.setdefault((verdict, identity.name), attestation)
    approved, denied = voices[Verdict.APPROVE], voices[Verdict.DENY]
    for each in denied.keys() & approved.keys():
        names = approved.pop(each)
        ignored += [f"approval by {name!r}: the same person has denied" for name in names]
    for verdict, persons in voices.items():
        ignored += _repeated(verdict, persons.values())
    by = {
        verdict: tuple(sorted(names[0] for names in persons.values()))
        for verdict, persons in voices.items()
    }
    return Tally(
        approved_by=by[Verdict.APPROVE],
        approvals=tuple(words[Verdict.APPROVE, name] for name in by[Verdict.APPROVE]),
        denied_by=by[Verdict.DENY],
        broken_glass_by=by[Verdict.BREAK_GLASS],
        broken_glass=tuple(words[Verdict.BREAK_GLASS, name] for name in by[Verdict.BREAK_GLASS]),
        ignored=tuple(sorted(ignored)),
    )


def _repeated(verdict: Verdict, persons: Iterable[list[str]]) -> Iterator[str]:
    """Sort the names of each person; yield why all but the first do not count."""
    for names in persons:
        # The first name in sort order represents the person, regardless of which came first.
        names.sort()
        yield from (f"{verdict} by {name!r}: the person counts once" for name in names[1:])


def _require_counted(
    attestation: Attestation, statement: Statement, digest: str, roster: Roster, now: datetime
) -> Identity:
    """Return the identity that signed an attestation, if it counts for this statement."""
    # Check this before the proof: attestations of other statements cost nothing.
    if attestation.statement != digest:
        raise NotTrusted(f"{_by(attestation)}: it is for another statement")
    identity = verify_attestation(attestation, roster)
    if attestation.verdict == Verdict.BREAK_GLASS:
        _require_breaker(identity, statement)
    else:
        _require_eligible(attestation, identity, statement, roster)
    _require_unexpired(attestation, roster, now)
    return identity


def _require_breaker(identity: Identity, statement: Statement) -> None:
    """Refuse an identity that may not break the glass, and any action other than a resume."""
    if statement.action is not Action.RESUME:
        raise NotTrusted(
            f"break-glass by {identity.name!r}: it is for one resume, and never for a "
            f"{statement.action}"
        )
    if not identity.may_break_glass(statement.ns):
        raise NotTrusted(
            f"break-glass by {identity.name!r}: {identity.name!r} is not an operator of namespace "
            f"{statement.ns!r} whom the roster marks for it"
        )


def require_answerer(identity: Identity, statement: Statement) -> None:
    """Refuse an identity that may not sign an answer: another person, or one without the role.

    Raises:
        NotTrusted: It may not.
    """
    if identity.person != statement.actor:
        raise NotTrusted(
            f"answer by {identity.name!r}: the answer is that of {statement.actor!r}, and only "
            "this person can sign it"
        )
    if not identity.may_any(ANSWERING, statement.ns):
        raise NotTrusted(
            f"answer by {identity.name!r}: {identity.name!r} is neither operator nor approver of "
            f"namespace {statement.ns!r}"
        )


def persons_asking(statement: Statement, roster: Roster) -> frozenset[str | None]:
    """Return the persons who make a request, with None for one that the roster does not know."""
    requester = roster.identity(statement.requester)
    asking = {None if requester is None else requester.person}
    if statement.actor is not None:
        asking |= {statement.actor} if statement.actor in roster.persons else {None}
    return frozenset(asking)


def _require_eligible(
    attestation: Attestation, identity: Identity, statement: Statement, roster: Roster
) -> None:
    """Refuse an identity whose verdict does not count for this statement."""
    denies, namespace = attestation.verdict == Verdict.DENY, statement.ns
    asking = persons_asking(statement, roster)
    if denies and identity.person in asking and identity.covers(namespace):
        return
    if statement.action is Action.ANSWER and not denies:
        require_answerer(identity, statement)
        return
    if not identity.may(Role.APPROVER, namespace):
        raise NotTrusted(
            f"{attestation.verdict} by {identity.name!r}: {identity.name!r} is not an approver "
            f"of namespace {namespace!r}"
        )
    if denies:
        return
    if None in asking:
        raise NotTrusted(
            f"approve by {identity.name!r}: the roster does not know who asks, so nobody can tell "
            "that it is another person"
        )
    if identity.person in asking:
        raise NotTrusted(f"approve by {identity.name!r}: it is the person who asks")


def _require_unexpired(attestation: Attestation, roster: Roster, now: datetime) -> None:
    if roster.key_expired_at(attestation.credential, now):
        raise NotTrusted(
            f"{_by(attestation)}: expected a key that has not expired, found one that has"
        )
