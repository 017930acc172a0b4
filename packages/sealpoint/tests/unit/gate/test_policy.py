# SPDX-License-Identifier: Apache-2.0
"""The policy file: read whole or refused, with the key, what was expected and what was found."""

import hashlib
import operator
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpoint.errors import PolicyInvalid, UsageError
from sealpoint.gate import Measure, Policy, Rule
from sealpoint.limits import POLICY_BYTES_MAX
from tests.cpu_time import CpuTime
from tests.unit.gate.judging import MEASURES, measures, policy, text

_GOOD = text(measures())
_RULES = (
    "older-checkpoint, tools, permissions, model, prompts, topology, code, application, "
    "runtime, other, narrower-world, first-world, missing-world, answer, unknown-outcome, old-age, "
    "after-restore, handoff-by-operator"
)
_APPROVE = "or approve N, N from 1 to 16"
_ANY = f"allow, record, reason, refuse {_APPROVE}"


def _refusal(source: str | bytes) -> str:
    """What a file that is no policy is refused with."""
    with pytest.raises(PolicyInvalid) as caught:
        Policy.parse(source.encode() if isinstance(source, str) else source)
    return caught.value.message


def _with(old: str, new: str) -> str:
    """The good file with one part of it replaced, which must be there once."""
    assert _GOOD.count(old) == 1
    return _GOOD.replace(old, new)


def test_a_policy_says_what_its_file_says() -> None:
    """Every key has its place on the object."""
    said: dict[str, str] = {
        Rule.OLDER_CHECKPOINT: "reason",
        Rule.TOOLS: "approve 16",
        Rule.PERMISSIONS: "approve 2",
        Rule.MODEL: "approve 1",
        Rule.PROMPTS: "reason",
        Rule.TOPOLOGY: "refuse",
        Rule.CODE: "record",
        Rule.APPLICATION: "record",
        Rule.RUNTIME: "allow",
        Rule.OTHER: "approve 10",
        Rule.NARROWER_WORLD: "allow",
        Rule.FIRST_WORLD: "record",
        Rule.MISSING_WORLD: "approve 3",
        Rule.ANSWER: "approve 4",
        Rule.OLD_AGE: "refuse",
        Rule.UNKNOWN_OUTCOME: "record",
        Rule.AFTER_RESTORE: "record",
        Rule.HANDOFF_BY_OPERATOR: "approve 2",
    }
    found = Policy.parse(text({str(rule): measure for rule, measure in said.items()}).encode())

    assert found.name == "tested"
    assert found.expires == timedelta(hours=24)
    assert found.age_max == timedelta(days=7)
    assert found.takeover_after == timedelta(minutes=5)
    assert list(found.rules) == list(Rule)
    assert {rule: str(measure) for rule, measure in found.rules.items()} == said
    assert found.rules[Rule.TOOLS] == Measure.approve(16)
    assert found.rules[Rule.OLD_AGE] == Measure.REFUSE


def test_a_policy_keeps_its_bytes_and_their_digest() -> None:
    """A comment, a space or another line ending makes another policy with another digest."""
    source = _GOOD.encode()
    commented = source + b"# more\n"
    other = _GOOD.replace("\n", "\r\n").encode()

    assert Policy.parse(source).source == source
    assert Policy.parse(source).digest == hashlib.sha256(source).hexdigest()
    assert Policy.parse(source) == Policy.parse(source)
    assert hash(Policy.parse(source)) == hash(Policy.parse(source))
    assert Policy.parse(commented) != Policy.parse(source)
    assert Policy.parse(commented).digest == hashlib.sha256(commented).hexdigest()
    assert Policy.parse(other).digest == hashlib.sha256(other).hexdigest()


def test_a_policy_cannot_be_changed_afterwards() -> None:
    """Neither its fields nor its rules; and it does not print its whole file."""
    found = policy()

    with pytest.raises(FrozenInstanceError):
        found.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.rules[Rule.ANSWER] = Measure.ALLOW  # type: ignore[index]
    with pytest.raises(TypeError):
        Policy(*(getattr(found, slot) for slot in Policy.__slots__))  # type: ignore[call-arg]
    assert not hasattr(found, "__dict__")
    assert "takeover_after = " not in repr(found)
    assert "older-checkpoint" not in repr(found)
    assert "name='tested'" in repr(found)


@pytest.mark.parametrize("rule", Rule)
def test_a_measure_is_found_by_the_rule_or_its_name(rule: Rule) -> None:
    """`measure` takes the member or its text."""
    source = text({**measures(Measure.approve(3)), rule: "refuse"})
    found = Policy.parse(source.encode())

    assert found.measure(rule) == Measure.REFUSE
    assert found.measure(str(rule)) == Measure.REFUSE
    assert {found.measure(other) for other in Rule if other is not rule} == {Measure.approve(3)}


def test_a_measure_of_no_rule_is_refused() -> None:
    """A misspelt rule has no measure, not even the strictest."""
    with pytest.raises(UsageError) as caught:
        policy().measure("reply")

    assert caught.value.message == f"rule: expected one of {_RULES}, found 'reply'"


_SPELLED = ["allow", "record", "reason", *(f"approve {n}" for n in range(1, 17)), "refuse"]
"""Every measure that there is, from the mildest to the strictest."""


@pytest.mark.parametrize(
    "compare",
    [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne],
)
def test_measures_are_ordered_by_strictness(compare: Callable[[object, object], bool]) -> None:
    """Not as the alphabet has them, and more people are stricter than fewer."""
    for i, left in enumerate(_SPELLED):
        for j, right in enumerate(_SPELLED):
            assert compare(Measure.parse(left), Measure.parse(right)) is compare(i, j)


def test_a_measure_is_spelled_as_it_is_read() -> None:
    """Each has one spelling, and says whether it passes and how many people it asks."""
    found = [Measure.parse(each) for each in _SPELLED]

    assert found == [
        *(Measure.ALLOW, Measure.RECORD, Measure.REASON),
        *(Measure.approve(people) for people in range(1, 17)),
        Measure.REFUSE,
    ]
    assert [str(each) for each in found] == _SPELLED
    assert [each.people for each in found if each is not None] == [0, 0, 0, *range(1, 17), 0]
    assert [each.asks_people for each in found if each is not None] == (
        [False] * 3 + [True] * 16 + [False]
    )
    assert [each.passes for each in found if each is not None] == [True] * 2 + [False] * 18


def test_a_policy_says_whether_it_asks_people_or_anything() -> None:
    """The measure of handoffs counts for neither: it is no run's affair."""
    assert not policy(Measure.RECORD).asks_people
    assert not policy(Measure.REFUSE).asks_people
    assert policy(Measure.RECORD, runtime="approve 1").asks_people
    assert policy(Measure.ALLOW).asks_nothing
    assert policy(Measure.RECORD, handoff_by_operator="refuse").asks_nothing
    assert not policy(Measure.RECORD, runtime="reason").asks_nothing
    assert not policy(Measure.RECORD, answer="refuse").asks_nothing


def test_rules_have_the_names_of_the_file() -> None:
    """The names are part of the format."""
    assert ", ".join(Rule) == _RULES


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_required(rule: Rule) -> None:
    """No rule has a default: a file without it is refused and named."""
    rules = measures()
    del rules[rule]

    assert _refusal(text(rules)).startswith(f"policy: rules.{rule}: expected one of ")
    assert _refusal(text(rules)).endswith(f"refuse {_APPROVE}, found nothing")


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("rule", Rule)
def test_a_rule_has_only_the_measures_it_may_have(rule: Rule, measure: Measure) -> None:
    """A run after a restore is always told; an operator's handoff needs another person."""
    least, may_be = {
        Rule.UNKNOWN_OUTCOME: (Measure.RECORD, "record, reason, refuse"),
        Rule.AFTER_RESTORE: (Measure.RECORD, "record, reason, refuse"),
        Rule.HANDOFF_BY_OPERATOR: (Measure.approve(1), "refuse"),
    }.get(rule, (Measure.ALLOW, ""))
    source = text({**measures(), rule: str(measure)})

    if measure >= least:
        assert Policy.parse(source.encode()).measure(rule) == measure
    else:
        assert _refusal(source) == (
            f"policy: rules.{rule}: expected one of {may_be} {_APPROVE}, found '{measure}'"
        )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('"Allow"', "'Allow'"),
        ('""', "''"),
        ('" allow"', "' allow'"),
        ('"maybe"', "'maybe'"),
        ('"deliberate"', "'deliberate'"),
        ('"approval"', "'approval'"),
        ('"approve"', "'approve'"),
        ('"approve "', "'approve '"),
        ('"approve 0"', "'approve 0'"),
        ('"approve 17"', "'approve 17'"),
        ('"approve 99"', "'approve 99'"),
        ('"approve 100"', "'approve 100'"),
        ('"approve 02"', "'approve 02'"),
        ('"approve -1"', "'approve -1'"),
        ('"approve +2"', "'approve +2'"),
        ('"approve 1.5"', "'approve 1.5'"),
        ('"approve two"', "'approve two'"),
        ('"approve  2"', "'approve  2'"),
        ('"approve 2 "', "'approve 2 '"),
        ('"approve 2\\n"', "'approve 2\\n'"),
        ('"approve\\t2"', "'approve\\t2'"),
        ('"approve2"', "'approve2'"),
        ('"Approve 2"', "'Approve 2'"),
        ('"approve \N{FULLWIDTH DIGIT TWO}"', "'approve \N{FULLWIDTH DIGIT TWO}'"),
        ('"approve \N{ARABIC-INDIC DIGIT TWO}"', "'approve \N{ARABIC-INDIC DIGIT TWO}'"),
        ('"' + "x" * 99 + '"', "'" + "x" * 64 + "'"),
        ("true", "a value of type bool"),
        ("0", "a value of type int"),
        ("0x" + "f" * 500, "a value of type int"),
        ("1.5", "a value of type float"),
        ("2026-01-05", "a value of type date"),
        ('["allow"]', "a value of type list"),
        ('{ measure = "allow" }', "a value of type dict"),
    ],
)
def test_a_rule_with_no_measure_is_refused(value: str, shown: str) -> None:
    """A measure has one spelling, and of what is no text only the type is told."""
    assert _refusal(_with('answer = "refuse"', f"answer = {value}")) == (
        f"policy: rules.answer: expected one of {_ANY}, found {shown}"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 2\n", "", "Object missing required field `version`"),
        ("version = 2\n", "version = 1\n", "version: expected 2, found 1"),
        ("version = 2\n", "version = 3\nelse = 3\n", "version: expected 2, found 3"),
        ("version = 2\n", "version = -1\n", "Expected `int` >= 0 - at `$.version`"),
        ("version = 2\n", "version = 2147483648\n", "version: expected 2, found 2147483648"),
        (
            "version = 2\n",
            "version = 2147483649\n",
            "Expected `int` <= 2147483648 - at `$.version`",
        ),
        ("version = 2\n", "version = true\n", "Expected `int`, got `bool` - at `$.version`"),
        ("version = 2\n", "version = 2.0\n", "Expected `int`, got `float` - at `$.version`"),
        ("version = 2\n", 'version = "2"\n', "Expected `int`, got `str` - at `$.version`"),
        ('name = "tested"\n', "", "Object missing required field `name`"),
        ('name = "tested"\n', "name = 7\n", "Expected `str`, got `int` - at `$.name`"),
        ('name = "tested"\n', 'name = "t"\nnotes = ""\n', "Object contains unknown field `notes`"),
        ("[rules]\n", "[rulez]\n", "Object contains unknown field `rulez`"),
        ("[rules]\n", "[[rules]]\n", "Expected `object`, got `array` - at `$.rules`"),
        (
            "[rules]\n",
            '[rules]\nsurprise = "allow"\n',
            f"rules: expected {_RULES}, found unknown key 'surprise'",
        ),
        (
            "[rules]\n",
            f'[rules]\n{"y" * 99} = "allow"\n',
            f"rules: expected {_RULES}, found unknown key '{'y' * 64}'",
        ),
        ("[approvals]\n", "[approval]\n", "Object contains unknown field `approval`"),
        (
            'expires = "24h"\n',
            'needed = 2\nexpires = "24h"\n',
            "Object contains unknown field `needed` - at `$.approvals`",
        ),
        (
            'expires = "24h"\n',
            "",
            "Object missing required field `expires` - at `$.approvals`",
        ),
        (
            'expires = "24h"\n',
            "expires = 24\n",
            "Expected `str`, got `int` - at `$.approvals.expires`",
        ),
        ('max = "7d"\n', "", "Object missing required field `max` - at `$.age`"),
        ('max = "7d"\n', "max = 7\n", "Expected `str`, got `int` - at `$.age.max`"),
        (
            'max = "7d"\n',
            'max = "7d"\nmin = "1d"\n',
            "Object contains unknown field `min` - at `$.age`",
        ),
        (
            'takeover_after = "5m"\n',
            "takeover_after = 5\n",
            "Expected `str`, got `int` - at `$.session.takeover_after`",
        ),
        (
            'takeover_after = "5m"\n',
            'takeover-after = "5m"\n',
            "Object contains unknown field `takeover-after` - at `$.session`",
        ),
    ],
)
def test_a_wrong_key_is_refused_by_name(old: str, new: str, message: str) -> None:
    """Unknown, missing, of another type or out of bounds: the message names the key."""
    assert _refusal(_with(old, new)) == f"policy: {message}"


@pytest.mark.parametrize("table", ["rules", "approvals"])
def test_the_tables_of_rules_and_approvals_are_required(table: str) -> None:
    """A policy without either says nothing."""
    without = re.sub(rf"\[{table}\][^\[]*", "", _GOOD)

    assert _refusal(without) == f"policy: Object missing required field `{table}`"


def test_an_age_is_required_unless_old_age_passes() -> None:
    """A rule about age without a bound would never apply, which is not what it says."""
    for measure in ("reason", "approve 2", "refuse"):
        without = text(measures(old_age=measure)).replace('[age]\nmax = "7d"\n', "")

        assert _refusal(without) == (
            f"policy: age.max: expected a duration, because rules.old-age is '{measure}', "
            "found nothing"
        )
    for measure in ("allow", "record"):
        passes = text(measures(old_age=measure))

        assert Policy.parse(passes.replace('[age]\nmax = "7d"\n', "").encode()).age_max is None
        assert Policy.parse(passes.encode()).age_max == timedelta(days=7)


@pytest.mark.parametrize("part", ['[session]\ntakeover_after = "5m"\n', 'takeover_after = "5m"\n'])
def test_sessions_may_be_taken_over_at_once_unless_said_otherwise(part: str) -> None:
    """The table of sessions may be absent or empty."""
    assert Policy.parse(_with(part, "").encode()).takeover_after == timedelta()


_BOUNDS = {
    "expires": ("approvals.expires", "24h", "1m", "30d"),
    "max": ("age.max", "7d", "1m", "3650d"),
    "takeover_after": ("session.takeover_after", "5m", "0s", "30d"),
}


def _durations(source: str) -> dict[str, timedelta | None]:
    found = Policy.parse(source.encode())
    return {
        "expires": found.expires,
        "max": found.age_max,
        "takeover_after": found.takeover_after,
    }


@pytest.mark.parametrize("key", _BOUNDS)
@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("60s", timedelta(seconds=60)),
        ("61s", timedelta(seconds=61)),
        ("1m", timedelta(minutes=1)),
        ("90m", timedelta(minutes=90)),
        ("36h", timedelta(hours=36)),
        ("30d", timedelta(days=30)),
        ("2592000s", timedelta(days=30)),
        ("007d", timedelta(days=7)),
    ],
)
def test_a_duration_is_a_whole_number_with_a_unit(
    key: str, given_text: str, expected: timedelta
) -> None:
    """Seconds, minutes, hours and days."""
    _, default, _, _ = _BOUNDS[key]
    source = _with(f'{key} = "{default}"', f'{key} = "{given_text}"')

    assert _durations(source)[key] == expected


@pytest.mark.parametrize(
    ("key", "given_text"),
    [
        *(
            (key, given_text)
            for key in _BOUNDS
            for given_text in (
                "",
                "7",
                "d",
                "7 d",
                " 7d",
                "7d ",
                "7d\\n",
                "+7d",
                "-7d",
                "7D",
                "7w",
                "1.5h",
                "1h30m",
                "1_0d",
                "\N{FULLWIDTH DIGIT SEVEN}d",
                "\N{ARABIC-INDIC DIGIT SEVEN}d",
                "1" * 99 + "s",
                "1000000000s",
                "3651d",
                "315360001s",
            )
        ),
        ("expires", "0s"),
        ("expires", "59s"),
        ("expires", "0m"),
        ("expires", "31d"),
        ("expires", "2592001s"),
        ("max", "0d"),
        ("max", "59s"),
        ("takeover_after", "31d"),
        ("takeover_after", "2592001s"),
    ],
)
def test_a_duration_that_is_none_or_out_of_bounds_is_refused(key: str, given_text: str) -> None:
    """The message has the key, the bounds and at most 64 characters of what stood there."""
    name, default, least, most = _BOUNDS[key]
    source = _with(f'{key} = "{default}"', f'{key} = "{given_text}"')
    found = given_text.replace("\\n", "\n")[:64]

    assert _refusal(source) == (
        f"policy: {name}: expected a whole number with one of s, m, h, d, from {least} to {most}, "
        f"found {found!r}"
    )


def test_the_bounds_of_durations_themselves_are_allowed() -> None:
    """The least and the most, of each."""
    for key, (_, default, least, most) in _BOUNDS.items():
        for bound in (least, most):
            _durations(_with(f'{key} = "{default}"', f'{key} = "{bound}"'))
    longest = _durations(_with('max = "7d"', 'max = "3650d"'))
    none = _durations(_with('takeover_after = "5m"', 'takeover_after = "0s"'))

    assert longest["max"] == timedelta(days=3650)
    assert none["takeover_after"] == timedelta()


@pytest.mark.parametrize("name", ["x", "two words", "équipe", "x" * 64, "é" * 32])
def test_a_policy_has_any_printable_name(name: str) -> None:
    """Up to 64 bytes of it."""
    source = _with('name = "tested"', f'name = "{name}"')

    assert Policy.parse(source.encode()).name == name


@pytest.mark.parametrize(
    "name",
    ["", " ", "\\t", "a\\nb", "\\u001b[31m", "\\u202e", "x" * 65, "x" * 99, "é" * 33],
)
def test_a_policy_without_a_printable_name_is_refused(name: str) -> None:
    """Blank, too long in bytes, or with characters that a terminal would act on."""
    message = _refusal(_with('name = "tested"', f'name = """{name}"""'))

    assert message.startswith("policy: name: expected 1 to 64 bytes of printable text, found '")
    assert message.isprintable()


def test_of_a_name_that_is_too_long_the_beginning_is_told() -> None:
    """Its first 64 characters."""
    assert _refusal(_with('name = "tested"', f'name = "{"x" * 99}"')) == (
        f"policy: name: expected 1 to 64 bytes of printable text, found '{'x' * 64}'"
    )


def test_a_policy_of_the_most_bytes_is_read_and_of_one_more_is_not() -> None:
    """The bound is on the bytes, before anything is parsed."""
    filler = "# more\n" * POLICY_BYTES_MAX
    largest = (_GOOD + filler).encode()[: POLICY_BYTES_MAX - 1] + b"\n"

    assert POLICY_BYTES_MAX == 65536
    assert Policy.parse(largest).source == largest
    assert _refusal(largest + b"\n") == "policy: expected at most 65536 bytes, found 65537"
    assert _refusal(b"\xff" * 65537) == "policy: expected at most 65536 bytes, found 65537"


def test_a_line_has_at_most_512_bytes() -> None:
    """One byte more is refused with its number, before anything is parsed."""
    fits = _GOOD + "#" * 512

    assert Policy.parse(fits.encode()).source == fits.encode()
    assert _refusal("\n\n" + "#" * 513 + "\n") == (
        "policy: line 3: expected at most 512 bytes, found 513"
    )


@pytest.mark.parametrize(
    "source",
    [
        ".".join("a" * 255) + " = 1\n",
        "".join(f"b{number}." + ".".join("a" * 250) + " = 1\n" for number in range(128)),
        f"[{'.'.join('a' * 255)}]\n" + "".join(f"b{number} = 1\n" for number in range(6500)),
        "a = " + "[" * 500,
        "a = [\n" * 9000,
        "a = " + "{a=" * 160,
    ],
)
def test_a_file_that_is_made_to_cost_time_is_refused_soon(source: str) -> None:
    """Long dotted keys cost the parser the square of their length, and deep nesting its stack."""
    assert len(source) <= POLICY_BYTES_MAX

    with CpuTime() as cpu_time:
        assert _refusal(source).startswith("policy: ")

    assert cpu_time.seconds < 5


def test_a_file_that_is_nested_too_deep_is_refused() -> None:
    """What exhausts the parser's stack is no policy, and no crash."""
    assert _refusal("a = " + "[\n" * 20000) == (
        "policy: it is nested too deeply; three levels are enough"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "policy: Object missing required field `version`"),
        (b"version", "policy: expected TOML, found: "),
        (b"{}", "policy: expected TOML, found: "),
        (b"version = 2\nversion = 2\n", "policy: expected TOML, found: Cannot overwrite a value"),
        (b"[rules]\n[rules]\n", "policy: expected TOML, found: Cannot declare ('rules',) twice"),
        (b"\xef\xbb\xbfversion = 1\n", "policy: expected TOML, found: "),
        (b"version = 1\0\n", "policy: expected TOML, found: "),
        (b'name = "\\ud800"\n', "policy: expected TOML, found: "),
        (b"version = 2026-99-99\n", "policy: expected TOML, found: "),
        (b"version = 1\r", "policy: expected TOML, found: "),
        (b"v = 1\n\xff", "policy: expected UTF-8, found a byte that is not at 6"),
        (b'name = "\xed\xa0\x80"', "policy: expected UTF-8, found a byte that is not at 8"),
        ("version = 2\n".encode("utf-16"), "policy: expected UTF-8, found a byte that is not at 0"),
    ],
)
def test_what_is_not_toml_is_refused(source: bytes, message: str) -> None:
    """The parser's own words follow, with line and column."""
    assert _refusal(source).startswith(message)


def test_a_rule_that_stands_twice_is_refused() -> None:
    """Of two measures for one rule neither holds."""
    twice = _with("[rules]\n", '[rules]\nanswer = "allow"\n')

    assert _refusal(twice).startswith("policy: expected TOML, found: Cannot overwrite a value")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_other_bytes_are_refused(data: bytes) -> None:
    """Nothing but `PolicyInvalid` is raised."""
    _refusal(data)


@given(
    st.integers(min_value=0, max_value=len(_GOOD) - 1),
    st.sampled_from("\0\n\"'[]=.#ax19 {}"),
)
def test_a_changed_file_is_another_policy_or_none(place: int, char: str) -> None:
    """One changed character gives another digest or a refusal, and nothing else is raised."""
    changed = (_GOOD[:place] + char + _GOOD[place + 1 :]).encode()
    if changed == _GOOD.encode():
        return
    try:
        found = Policy.parse(changed)
    except PolicyInvalid:
        return

    assert found.digest != Policy.parse(_GOOD.encode()).digest


_AT_ONCE = """
import sys, threading
from sealpoint.gate import Policy, shipped_policy

source = shipped_policy("strict")
barrier = threading.Barrier(8)
read = []

def parse():
    barrier.wait()
    read.append(Policy.parse(source))

sys.setswitchinterval(1e-6)
workers = [threading.Thread(target=parse) for _ in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert len(read) == 8
"""


@pytest.mark.parametrize("number", range(3))
def test_the_first_policy_of_a_process_may_be_read_by_several_threads(number: int) -> None:
    """What a library learns about our types at their first use is learned before (it crashed)."""
    done = subprocess.run([sys.executable, "-c", _AT_ONCE], check=False, capture_output=True)

    assert (done.returncode, done.stderr, number) == (0, b"", number)
