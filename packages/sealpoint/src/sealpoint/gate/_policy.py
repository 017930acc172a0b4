# SPDX-License-Identifier: Apache-2.0
"""The policy: the conditions of a namespace for letting a saved run resume.

A policy is a TOML file. The parser accepts the whole file or nothing: it refuses an unknown key, a
missing rule, and a value of another type or out of bounds, and names the key, the expected value
and the actual value. Empty means no: every rule must be present, and no rule has a default. The
digest is that of the exact bytes, and the roster names that digest; the caller must check that the
roster names this one.
"""

import functools
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum, unique
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar

import msgspec

from sealpoint.durations import duration_text, parse_duration
from sealpoint.errors import PolicyInvalid, UsageError
from sealpoint.ledger import STORE_CHAIN
from sealpoint.limits import POLICY_BYTES_MAX
from sealpoint.signing import Roster
from sealpoint.store import Core
from sealpoint.world import LeafClass

SHIPPED_POLICIES = ("dev", "solo", "team", "strict")
"""The names of the policies that come with Sealpoint."""

# A dotted key of n parts costs the TOML parser n squared steps, and a key ends with its line.
_LINE_BYTES_MAX = 512
_NAME_BYTES_MAX = 64
_MINUTE, _MONTH, _YEAR = timedelta(minutes=1), timedelta(days=30), timedelta(days=365)
_VERSION = 2


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """The requirement of a rule; a greater measure is stricter."""

    strictness: int
    people: int = 0
    """How many other people have to approve."""

    ALLOW: ClassVar["Measure"]
    """The resume passes, without a record."""
    RECORD: ClassVar["Measure"]
    """The resume passes, and its entry records the rule."""
    REASON: ClassVar["Measure"]
    """The caller states why: `deliberate="reason"`. An approval also satisfies it."""
    REFUSE: ClassVar["Measure"]
    """The resume is refused for everyone."""

    @classmethod
    def approve(cls, people: int) -> "Measure":
        """Return the measure that requires approval by this many other people."""
        return cls(_APPROVE, people)

    @classmethod
    def parse(cls, text: object) -> "Measure | None":
        """Parse a measure as a policy spells it; None if the text is not a measure."""
        if not isinstance(text, str):
            return None
        if (match := _APPROVE_SPELLED.fullmatch(text)) is not None:
            return cls.approve(int(match[1])) if int(match[1]) <= _PEOPLE_MAX else None
        return _SPELLED.get(text)

    @property
    def asks_people(self) -> bool:
        """Whether other people have to approve."""
        return self.people > 0

    @property
    def passes(self) -> bool:
        """Whether the measure requires nothing."""
        return self <= Measure.RECORD

    def __str__(self) -> str:
        if self.asks_people:
            return f"approve {self.people}"
        return next(text for text, each in _SPELLED.items() if each == self)


_APPROVE = 3
_PEOPLE_MAX = 16
_APPROVE_SPELLED = re.compile("approve ([1-9][0-9]?)")
Measure.ALLOW, Measure.RECORD, Measure.REASON = map(Measure, range(_APPROVE))
Measure.REFUSE = Measure(_APPROVE + 1)
_SPELLED: Mapping[str, Measure] = MappingProxyType(
    {
        "allow": Measure.ALLOW,
        "record": Measure.RECORD,
        "reason": Measure.REASON,
        "refuse": Measure.REFUSE,
    }
)


@unique
class Rule(StrEnum):
    """The rules of a policy, in the order in which reasons are reported."""

    OLDER_CHECKPOINT = "older-checkpoint"
    """The checkpoint is not the newest of its thread, newer ones were deleted, or it is a copy, or
    was handed over by a stranger who saved it or deleted something."""
    TOOLS = "tools"
    """A tool was added, or the description of a tool for the model changed."""
    PERMISSIONS = "permissions"
    """A permission was added, or the run stops for people at other places."""
    MODEL = "model"
    """The model or its settings changed."""
    PROMPTS = "prompts"
    """A fixed prompt changed."""
    TOPOLOGY = "topology"
    """Nodes, edges or sub-agents changed, but not where the run stops for people."""
    CODE = "code"
    """The code differs from that of the checkpoint; comments and formatting do not count."""
    APPLICATION = "application"
    """Other modules of the application, which the run does not import, changed."""
    RUNTIME = "runtime"
    """The version of Python, of the framework or of a package changed."""
    OTHER = "other"
    """Another declaration of the application changed."""
    NARROWER_WORLD = "narrower-world"
    """The run has fewer capabilities than when it was saved."""
    FIRST_WORLD = "first-world"
    """A world is declared now, and none was when the checkpoint was saved."""
    MISSING_WORLD = "missing-world"
    """A world was declared when the checkpoint was saved, and none is now."""
    ANSWER = "answer"
    """A question is pending, or an answer is given."""
    UNKNOWN_OUTCOME = "unknown-outcome"
    """A session resumed with an answer and saved nothing: the resume may repeat its effects."""
    OLD_AGE = "old-age"
    """The checkpoint is older than `age.max`."""
    AFTER_RESTORE = "after-restore"
    """An accepted restore cut the thread, and the thread has not been executed since."""
    HANDOFF_BY_OPERATOR = "handoff-by-operator"
    """An operator, not the owner, gives the thread to another owner."""


RULE_WORDS: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.OLDER_CHECKPOINT: "the checkpoint was not the newest, newer ones had been deleted, or "
        "it was a copy, or a stranger had saved it or deleted something",
        Rule.TOOLS: "tools were added, or are not what they were",
        Rule.PERMISSIONS: "permissions were added, or the run stopped for people at other places",
        Rule.MODEL: "the model or its settings were not those of the checkpoint",
        Rule.PROMPTS: "the prompts were not those of the checkpoint",
        Rule.TOPOLOGY: "nodes, edges or sub-agents were not those of the checkpoint",
        Rule.CODE: "the code was not that of the checkpoint",
        Rule.APPLICATION: "other modules of the application were not those of the checkpoint",
        Rule.RUNTIME: "versions of Python, framework or packages were not those of the checkpoint",
        Rule.OTHER: "something else that was declared was not what it had been",
        Rule.NARROWER_WORLD: "the run could do less than when it was saved",
        Rule.FIRST_WORLD: "a world was declared, and none was when the checkpoint was saved",
        Rule.MISSING_WORLD: "no world was declared, and one was when the checkpoint was saved",
        Rule.ANSWER: "a question was pending, or an answer was given",
        Rule.UNKNOWN_OUTCOME: "a session had resumed with an answer and saved nothing: its work "
        "may have been done twice",
        Rule.OLD_AGE: "the checkpoint was older than the policy's age.max",
        Rule.AFTER_RESTORE: "a restore had cut the thread, and it had not been executed since",
        Rule.HANDOFF_BY_OPERATOR: "an operator, not the owner, gave the thread to another owner",
    }
)
"""The description of each rule for a decision in the past."""

COMPARED_RULES = frozenset(map(Rule, LeafClass)) | {Rule.NARROWER_WORLD}
"""The rules about a difference between two worlds, which a rollout can allow."""

_RULES: Mapping[str, Rule] = {str(rule): rule for rule in Rule}

_LEAST: Mapping[Rule, Measure] = {
    # A restore undoes events: a resume after it must always be recorded.
    Rule.AFTER_RESTORE: Measure.RECORD,
    # An answer is acted on once: a second run with it must always be recorded.
    Rule.UNKNOWN_OUTCOME: Measure.RECORD,
    # Every reader requires another person's attestation for such a handoff.
    Rule.HANDOFF_BY_OPERATOR: Measure.approve(1),
}


class _Approvals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    expires: str


class _Age(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    max: str


class _Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    takeover_after: str = "0s"


class _Version(msgspec.Struct, frozen=True):
    version: Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    name: str
    rules: dict[str, object]
    approvals: _Approvals
    age: _Age | None = None
    session: _Session = _Session()


# msgspec builds the type information on first use, and crashes the process if two OS threads do
# that at the same time; so it is built here.
for _each in (_Version, _Document):
    msgspec.json.Decoder(_each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A parsed policy; two policies are equal if their bytes are equal."""

    source: bytes = field(repr=False)
    """The exact bytes of the file."""
    digest: str
    """The SHA-256 of the source, in hexadecimal; the roster refers to the policy by it."""
    name: str
    rules: Mapping[Rule, Measure] = field(compare=False, repr=False)
    """Every rule with its measure."""
    expires: timedelta
    """How long a request stays open."""
    age_max: timedelta | None
    """The age from which `old-age` applies; None: it never applies."""
    takeover_after: timedelta
    """How long an unfinished session must have saved nothing before another may take over."""
    asks_people: bool = field(init=False, compare=False, repr=False)
    """Whether any resume may need approvals; the rule for handoffs is not considered."""
    asks_nothing: bool = field(init=False, compare=False, repr=False)
    """Whether every resume passes; the rule for handoffs is not considered."""

    def __post_init__(self) -> None:
        # Every write needs these, and the rules never change.
        runs = [each for rule, each in self.rules.items() if rule is not Rule.HANDOFF_BY_OPERATOR]
        object.__setattr__(self, "asks_people", any(measure.asks_people for measure in runs))
        object.__setattr__(self, "asks_nothing", all(measure.passes for measure in runs))

    def measure(self, rule: str) -> Measure:
        """Return the measure of a rule.

        Raises:
            UsageError: There is no such rule.
        """
        if rule not in _RULES:
            raise UsageError(f"rule: expected one of {_listed(Rule)}, found {rule!r}")
        return self.rules[_RULES[rule]]

    @staticmethod
    def parse(data: bytes) -> "Policy":
        """Parse a policy file.

        Raises:
            PolicyInvalid: The bytes are not a policy, or not one of this version.
        """
        return _parsed(data)


@functools.lru_cache(maxsize=32)
def _parsed(data: bytes) -> Policy:
    """Parse a policy once: most stores of a process have the same."""
    document = _document(data)
    name = document.name
    if not name.strip() or not name.isprintable() or len(name.encode()) > _NAME_BYTES_MAX:
        raise PolicyInvalid(
            f"policy: name: expected 1 to {_NAME_BYTES_MAX} bytes of printable text, "
            f"found {name[:64]!r}"
        )
    rules = _rules(document.rules)
    if document.age is None and not rules[Rule.OLD_AGE].passes:
        raise PolicyInvalid(
            "policy: age.max: expected a duration, because rules.old-age is "
            f"{str(rules[Rule.OLD_AGE])!r}, found nothing"
        )
    return Policy(
        source=data,
        digest=hashlib.sha256(data).hexdigest(),
        name=name,
        rules=MappingProxyType(rules),
        expires=_duration("approvals.expires", document.approvals.expires, _MINUTE, _MONTH),
        age_max=(
            None
            if document.age is None
            else _duration("age.max", document.age.max, _MINUTE, 10 * _YEAR)
        ),
        takeover_after=_duration(
            "session.takeover_after", document.session.takeover_after, timedelta(0), _MONTH
        ),
    )


def shipped_policy(name: str) -> bytes:
    """Return the bytes of a shipped policy: `dev`, `solo`, `team` or `strict`.

    Raises:
        PolicyInvalid: No policy of that name is shipped.
    """
    if name not in SHIPPED_POLICIES:
        raise PolicyInvalid(
            f"shipped policy: expected one of {', '.join(SHIPPED_POLICIES)}, found {name[:64]!r}"
        )
    # Not importlib.resources: this package bans importlib for every purpose.
    return (Path(__file__).with_name("policies") / f"{name}.toml").read_bytes()


def _document(data: bytes) -> _Document:
    """Parse the bytes into tables of the right types, without unknown keys."""
    if len(data) > POLICY_BYTES_MAX:
        raise PolicyInvalid(f"policy: expected at most {POLICY_BYTES_MAX} bytes, found {len(data)}")
    for number, line in enumerate(data.split(b"\n"), start=1):
        if len(line) > _LINE_BYTES_MAX:
            raise PolicyInvalid(
                f"policy: line {number}: expected at most {_LINE_BYTES_MAX} bytes, "
                f"found {len(line)}"
            )
    try:
        tables = tomllib.loads(data.decode())
        # The version first: in another version, the other keys have another meaning.
        version = msgspec.convert(tables, _Version).version
        if version != _VERSION:
            raise PolicyInvalid(f"policy: version: expected {_VERSION}, found {version}")
        return msgspec.convert(tables, _Document)
    except UnicodeDecodeError as exc:
        raise PolicyInvalid(
            f"policy: expected UTF-8, found a byte that is not at {exc.start}"
        ) from exc
    except msgspec.ValidationError as exc:
        raise PolicyInvalid(f"policy: {exc}") from exc
    except ValueError as exc:
        raise PolicyInvalid(f"policy: expected TOML, found: {exc}") from exc
    except RecursionError as exc:
        raise PolicyInvalid("policy: it is nested too deeply; three levels are enough") from exc


def _rules(found: Mapping[str, object]) -> dict[Rule, Measure]:
    """Check that every rule is present, each with a permitted measure."""
    for key in found:
        if key not in tuple(Rule):
            raise PolicyInvalid(
                f"policy: rules: expected {_listed(Rule)}, found unknown key {key[:64]!r}"
            )
    rules: dict[Rule, Measure] = {}
    for rule in Rule:
        least = _LEAST.get(rule, Measure.ALLOW)
        measure = Measure.parse(found.get(rule))
        if measure is None or measure < least:
            may_be = [text for text, each in _SPELLED.items() if each >= least]
            raise PolicyInvalid(
                f"policy: rules.{rule}: expected one of {_listed(may_be)} or approve N, N from 1 "
                f"to {_PEOPLE_MAX}, found {_shown(found.get(rule))}"
            )
        rules[rule] = measure
    return rules


def _duration(key: str, text: str, least: timedelta, most: timedelta) -> timedelta:
    """Parse a whole number with its unit, within bounds."""
    found = parse_duration(text, "smhd")
    if found is None or not least <= found <= most:
        raise PolicyInvalid(
            f"policy: {key}: expected a whole number with one of s, m, h, d, from "
            f"{duration_text(least)} to {duration_text(most)}, found {text[:64]!r}"
        )
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _shown(value: object) -> str:
    """Return the text found in place of a measure; for other types only the type name."""
    if value is None:
        return "nothing"
    return repr(value[:64]) if isinstance(value, str) else f"a value of type {type(value).__name__}"


# The roster names the digest of the policy in force; the store chain's blobs hold its bytes.


class Policies:
    """The policies of an open store, each read and checked once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[str, Policy] = {}
        self._told: set[str] = set()

    def in_force(self, roster: Roster) -> Policy | None:
        """Return the policy that a roster names for the store's namespace; None if it names none.

        Raises:
            PolicyInvalid: The bytes are missing, or are not the ones that the root signed.
        """
        digest = roster.policy_digest(self._core.namespace)
        policy = None if digest is None else self.get(digest)
        if policy is not None and policy.asks_nothing and policy.digest not in self._told:
            self._told.add(policy.digest)
            self._core.emit_lenient(policy.name)
        return policy

    def get(self, digest: str) -> Policy:
        """Return the policy with this digest.

        Raises:
            PolicyInvalid: Its bytes are missing or different.
        """
        policy = self._known.get(digest)
        if policy is None:
            data = self._core.storage.blob(STORE_CHAIN, bytes.fromhex(digest), POLICY_BYTES_MAX)
            if data is None or sha256(data).hexdigest() != digest:
                found = "missing" if data is None else "there with other bytes"
                raise PolicyInvalid(
                    f"policy {digest[:12]}: the file that the roster names is {found}",
                    hint="Enter it again with sealpoint policy apply FILE.",
                )
            policy = self._known[digest] = Policy.parse(data)
        return policy
