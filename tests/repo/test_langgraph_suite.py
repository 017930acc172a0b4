# SPDX-License-Identifier: Apache-2.0
"""Running the framework's tests on our saver: causes, tables and the record, without a checkout."""

import pytest

from benchmarks._record import SIZES_HEADING, SUITE_HEADING, with_section
from benchmarks.langgraph_suite._causes import cause_of, rules_of
from benchmarks.langgraph_suite._report import UPSTREAM, Row, failing_lines, table
from benchmarks.langgraph_suite._session import Outcome
from benchmarks.langgraph_suite._stores import allowing_policy
from sealpoint.errors import ResumeRefused, Superseded
from sealpoint.gate import Measure, Policy, Rule, decide
from tests.unit.gate.judging import TRIGGERS, facts, policy

_RECORD = "# Results\n\nfigures\n\n## Edits\n\nrows\n\n## Sizes\n\nsizes\n"


@pytest.mark.parametrize("rule", TRIGGERS)
def test_a_rule_is_known_by_the_words_of_the_gate(rule: Rule) -> None:
    """What the gate says where a rule applies is told by the name of the rule."""
    decision = decide(facts(TRIGGERS[rule]), policy(Measure.REFUSE))

    assert rules_of(reason.words for reason in decision.reasons) == [rule]


def test_sentences_that_did_not_decide_are_left_out() -> None:
    """Of several sentences those count that say what would have helped."""
    told = ("an answer is given to a pending question", "the code is not that (pass deliberate...)")

    assert rules_of(told) == ["code"]
    assert rules_of(["something new"]) == ["unknown"]


def test_an_error_of_ours_is_told_by_its_code_wherever_it_is() -> None:
    """An error of ours is found behind another one and inside of a group."""
    ours = Superseded("thread 't': overtaken")
    outer = ValueError("outer")
    outer.__cause__ = ExceptionGroup("tasks", [KeyError("k"), ours])
    refused = ResumeRefused("no", reasons=("the checkpoint is not the newest of thread 't'",))

    assert cause_of(outer).name == "superseded"
    assert cause_of(outer).line == "Superseded: thread 't': overtaken"
    assert cause_of(refused).name == "resume-refused: older-checkpoint"


def test_other_errors_are_told_by_what_was_expected() -> None:
    """What is no error of ours is told by the kind of expectation that was not met."""
    text = "assert {'__pregel_sealpoint_run': 1} == {}"

    assert cause_of(AssertionError("assert 1 == 2")).name == "another result"
    assert cause_of(AssertionError(text)).name == "a mark in a configuration"
    assert cause_of(pytest.fail.Exception("DID NOT RAISE ValueError")).name == "did not raise"
    assert cause_of(KeyError("k"), ["superseded", "superseded"]).name == "KeyError after superseded"
    assert cause_of(AttributeError("'_NotingSaver' object has no attribute 'blobs'")).name == (
        "private parts of the stock saver"
    )


def test_the_allowing_policy_asks_for_the_least_that_a_policy_can() -> None:
    """Every rule of it is on `allow`, but for those that no policy may have there."""
    rules = Policy.parse(allowing_policy()).rules
    stricter = {rule: measure for rule, measure in rules.items() if measure != Measure.ALLOW}

    assert stricter == {
        Rule.UNKNOWN_OUTCOME: Measure.RECORD,
        Rule.AFTER_RESTORE: Measure.RECORD,
        Rule.HANDOFF_BY_OPERATOR: Measure.approve(1),
    }


def test_a_row_counts_a_test_that_passes_alone_as_unsteady() -> None:
    """Failures are counted by cause; those of the stock saver and those that go away are told."""
    row = Row(
        mode="bare",
        policy="allow",
        outcomes=[
            Outcome(test="a", outcome="passed", savers=1, types=["tests.T"]),
            Outcome(test="b", outcome="failed", cause="superseded", line="Superseded: x"),
            Outcome(test="c", outcome="failed", cause="took too long"),
            Outcome(test="d", outcome="failed", cause="another result", line="assert"),
        ],
        unsteady=frozenset({"c"}),
        upstream=frozenset({"d"}),
    )

    assert table([row])[2] == (
        f"| bare | allow | 4 | 1 | 0 | 1 | 2 | 0 | 2 | 1 | 1 superseded; 1 {UPSTREAM} |"
    )
    assert failing_lines(row) == [
        f"{UPSTREAM}: d: assert",
        "superseded: b: Superseded: x",
        "unsteady: c: failed once, passed alone",
    ]


def test_a_section_of_the_record_leaves_the_others_alone() -> None:
    """A section is added behind the others, and replaced in its place."""
    added = with_section(_RECORD, SUITE_HEADING, ["", "tests"])

    assert added == f"{_RECORD}\n{SUITE_HEADING}\n\ntests\n"
    assert with_section(added, SIZES_HEADING, ["", "more"]) == added.replace(
        "\nsizes\n", "\nmore\n"
    )
    assert with_section(added, SUITE_HEADING, ["", "new"]) == added.replace("\ntests\n", "\nnew\n")
