# SPDX-License-Identifier: Apache-2.0
"""What people compare: question, calls, answer and differences, by what frameworks store."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.api import examine, read_release
from sealpoint.codec import UntypedValue
from sealpoint.gate._resume_call import answer_digest
from sealpoint.store import ResultsDraft, SaveDraft
from sealpoint.views.decision import Decision, read_decision
from sealpoint.views.masking import SECRETS
from sealpoint.views.readable import TextField, lines_of, named_values
from sealpoint.views.summaries import answer_line, question_line, shorten_alike
from sealpoint.world import World
from tests.deployment import Deployment
from tests.effort import examples
from tests.unit.gate.team import READ, Team

_ID = "9" * 32
_OTHER = "8" * 32
_PUSH = "~__pregel_push, 0000000000, 0000000000"


def _decide(question: Any, answer: Any, *, path: str = "", **channels: Any) -> Decision:
    """Save a state with a question, ask for its answer, and read what people compare."""
    team, world = Team(Deployment()), World.of(READ)
    state = {"channel_values": channels}
    asked = ResultsDraft([], checkpoint="root", task="t", path=path, question=question, world=world)
    team.thread().adapter.commit([SaveDraft(state, "root", None, None, world), asked])
    request = team.ask(answer=answer, world=READ)
    store = team.store("ann")
    examined = examine(store, store.request(request.id), states=True)
    return read_decision(examined.shown, examined)


def _asked(value: Any, id_: str = _ID) -> list[dict[str, Any]]:
    return [{"id": id_, "value": value}]


def _review(**arguments: Any) -> Any:
    action = {"name": "refund", "args": arguments}
    return _asked({"action_requests": [action], "review_configs": []})


def _fields(shown: Iterable[TextField]) -> dict[str, tuple[str, ...]]:
    return {each.name: each.lines for each in shown}


def _answer(question: Any, answer: Any, **channels: Any) -> dict[str, tuple[str, ...]]:
    """Return the fields of the answer to the only question."""
    found = _decide(question, answer, **channels)
    (asked,) = found.questions
    assert found.answer == ()
    return _fields(asked.answer)


def _ai(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"content": "", "tool_calls": list(calls)}


def _call(**arguments: Any) -> dict[str, Any]:
    return {"name": "refund", "args": arguments, "id": "c-1", "type": "tool_call"}


@pytest.mark.parametrize(
    ("asked", "arguments", "said"),
    [
        ("Refund 120?", {"amount": 120}, ""),
        ("Refund 120.00 EUR?", {"amount": 120}, ""),
        ("Refund 1,200?", {"amount": 1200}, ""),
        ("Shall I go on?", {"amount": 1200}, ""),
        ("Refund 120?", {"amount": 1200}, "says 120, and the call has amount 1200."),
        ("Refund 120?", {"amount": "1200"}, 'says 120, and the call has amount "1200".'),
        ("Refund 120?", {"amount": -120}, "says 120, and the call has amount -120."),
        ({"refund": 120}, {"amount": 1200}, "says 120, and the call has amount 1200."),
        ("Pay acme?", {"to": "acme", "iban": "DE9"}, "does not mention iban of refund."),
        ("Pay A-17?", {"order": "A-17", "amount": 17}, "does not mention amount of refund."),
    ],
)
def test_a_value_that_the_question_gives_otherwise_or_leaves_out_is_named(
    asked: Any, arguments: dict[str, Any], said: str
) -> None:
    """The question is what the agent says, and the call is what would run."""
    found = _decide(_asked(asked), {"resume": "yes"}, messages=[_ai(_call(**arguments))])
    (question,) = found.questions

    assert found.differences == ((f"The question {said}",) if said else ())
    assert [each.name for each in question.calls] == ["refund"]
    marked = {each.name for each in question.calls[0].arguments if each.style == "warning"}
    assert bool(marked) == bool(said)


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ({"type": "approve"}, []),
        ({"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 120}}}, []),
        (
            {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 1200}}},
            ["The answer changes amount from 120 to 1200."],
        ),
        (
            {"type": "edit", "args": {"action": "wire", "args": {"amount": 120, "to": "x"}}},
            ["The answer calls wire instead of refund.", "The answer adds to: x."],
        ),
        (
            {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": True}}},
            ["The answer changes amount from 120 to true."],
        ),
        (
            {"type": "edit", "edited_action": {"name": "refund", "args": {}}},
            ["The answer removes amount, which was 120."],
        ),
    ],
)
def test_what_an_answer_edits_is_named(decision: dict[str, Any], said: list[str]) -> None:
    """Nobody has to compare two lists of arguments."""
    found = _decide(_review(amount=120), {"resume": {"decisions": [decision]}})

    assert list(found.differences) == said
    assert found.questions[0].answer[0].lines[0] == decision["type"]


def test_a_call_that_nobody_is_asked_about_is_named() -> None:
    """A review may leave out calls that would run after the same answer."""
    found = _decide(
        _review(amount=120),
        {"resume": {"decisions": [{"type": "approve"}]}},
        messages=[_ai(_call(amount=120), {"name": "wire", "args": {"to": "x"}, "id": "c-2"})],
    )

    assert found.differences == ("The question does not mention the call of wire.",)
    assert [(each.name, each.is_asked) for each in found.questions[0].calls] == [
        ("refund", True),
        ("wire", False),
    ]


def test_a_call_that_has_its_result_is_not_pending() -> None:
    """Only what would still run belongs to the question."""
    done = {"content": "ok", "tool_call_id": "c-1"}
    found = _decide(
        _asked("Go on?"),
        {"resume": "yes"},
        messages=[_ai(_call(amount=1), _call(amount=2) | {"id": "c-2"}), done],
    )
    (call,) = found.questions[0].calls

    assert call.arguments[0].lines == ("2",)


def test_identical_calls_are_all_shown() -> None:
    """Each of them runs, and a question may be about one of them only."""
    five = _ai(*(_call(amount=120) | {"id": f"c-{number}"} for number in range(5)))
    asked = _decide(_asked("Refund 120?"), {"resume": "yes"}, messages=[five])
    reviewed = _decide(
        _review(amount=120), {"resume": {"decisions": [{"type": "approve"}]}}, messages=[five]
    )

    assert len(asked.questions[0].calls) == 5
    assert [each.is_asked for each in reviewed.questions[0].calls] == [True, *[False] * 4]
    assert reviewed.differences == ("The question does not mention the call of refund.",) * 4


@pytest.mark.parametrize(
    "channels",
    [
        {"messages": [_ai(_call(amount=5)), {"content": "go on", "type": "human"}]},
        {"messages": [_ai(_call(amount=5), _call(amount=5)), {"tool_call_id": "c-1"}]},
        {"history": [_ai(_call(amount=5))]},
        {"kept": {"inner": [_ai(_call(amount=5)) | {"role": "assistant"}]}},
        {"messages": [_ai(_call(amount=5))], "copy": [_ai(_call(amount=5))]},
    ],
    ids=["a message after it", "an id twice", "another key", "deeper", "a copy"],
)
def test_every_call_that_a_tool_node_would_run_is_shown(channels: Any) -> None:
    """It runs the calls of the newest message that has any, whatever follows that message."""
    (question,) = _decide(_asked("Go on?"), {"resume": "yes"}, **channels).questions
    messages = channels.get("messages", [_ai(_call())])

    assert len(question.calls) == len(messages[0]["tool_calls"])
    assert {each.arguments[0].lines for each in question.calls} == {("5",)}


def test_notes_of_several_calls_are_all_shown() -> None:
    """None of them replaces another one, or a field of the whole request."""
    actions = [{"name": "refund", "args": {"amount": n}, "note": f"to {n}"} for n in (1, 2)]
    actions += [{"name": "wire", "args": {}, "note": "none"}]
    (question,) = _decide(_asked({"action_requests": actions, "note": "all"}), 1).questions

    assert _fields(question.fields) == {
        "note": ("all",),
        "refund (1): note": ("to 1",),
        "refund (2): note": ("to 2",),
        "wire: note": ("none",),
    }


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ({"decisions": [{"type": "approve"}]}, {"": ("approve",)}),
        (
            {"decisions": [], "type": "edit", "args": {"to": "evil"}},
            {"decisions": ("[]",), "type": ("edit",), "args": ("{", '  "to": "evil"', "}")},
        ),
        (
            {"decisions": [{"type": "approve"}], "message": "all", "args": None},
            {"refund": ("approve",), "message": ("all",), "args": ("null",)},
        ),
        (
            {"decisions": [{"type": "edit", "args": {"amount": 9}}]},
            {"": ("edit",), "args": ("{", '  "amount": 9', "}")},
        ),
        (
            {
                "decisions": [
                    {"type": "edit", "args": {"amount": 9, "name": "refund", "args": {"a": 1}}}
                ]
            },
            {
                "": ("edit",),
                "args": (
                    *("{", '  "amount": 9,', '  "name": "refund",'),
                    *('  "args": {', '    "a": 1', "  }", "}"),
                ),
            },
        ),
        (
            {"decisions": [{"type": "edit", "edited_action": {"name": "wire", "args": {"": "a"}}}]},
            {"": ("edit", "call wire"), '""': ("a",)},
        ),
        (
            {"decisions": [{"type": "approve"}, {"type": "reject", "message": "no\namount: 1"}]},
            {
                "refund": ("approve",),
                "decision 2": ("reject",),
                "decision 2: message": ("no", "amount: 1"),
            },
        ),
        ({"type": "approve", "": "x"}, {"type": ("approve",), '""': ("x",)}),
        ({"$object": {"type": "No", "text": "No(why='x')"}}, {"(type)": ("No",), "why": ("x",)}),
        ({"(type)": "No", "a: b": 1}, {'"(type)"': ("No",), '"a: b"': ("1",)}),
    ],
)
def test_every_key_of_an_answer_is_shown(reply: Any, shown: dict[str, Any]) -> None:
    """A short form stands for exactly what it is made of."""
    assert _answer(_review(amount=120), {"resume": reply}) == shown


def test_only_one_tag_of_an_answer_is_taken_off() -> None:
    """What is beside it is an effect of its own."""
    found = _decide(_asked("Pay?"), {"resume": "no", "responses": {"pay": "all"}, "x": None})

    assert _fields(found.questions[0].answer) == {"": ("no",)}
    assert _fields(found.answer) == {"responses": ("{", '  "pay": "all"', "}"), "x": ("null",)}
    assert found.differences == ("The answer does more than answer: it also sets responses, x.",)
    assert answer_line({"resume": "no", "x": False}) == "no, x: false"


def test_an_edit_of_an_unknown_form_is_named() -> None:
    """What it changes is not guessed."""
    decision = {"type": "edit", "args": {"amount": 9, "name": "refund", "args": {"amount": 120}}}
    found = _decide(_review(amount=120), {"resume": {"decisions": [decision]}})

    (said,) = found.differences
    assert said == "The answer edits refund in a form that is not known here: read all of it."


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("false", False),
        ("null", None),
        ("5", 5),
        (" 5", 5),
        ("- x", ["x"]),
        ("- x\n- y", ["x", "y"]),
        ("[]", []),
        ("", None),
        ('"x"', "x"),
        ('{\n  "a": 1\n}', {"a": 1}),
        ("value: (1,)", (1,)),
        (1, True),
        (1, 1.0),
    ],
)
def test_different_answers_look_different(one: Any, other: Any) -> None:
    """A text that also reads as another value is in quotes; other texts are not."""
    assert lines_of(one) != lines_of(other)
    assert lines_of("Yes, 5 - all\n- x") == ("Yes, 5 - all", "- x")


def test_names_of_fields_imitate_no_other_fields() -> None:
    """Each key has a label of its own."""
    names = ["", '""', "a", "a ", "a: b", "(type)", '"a"', "\u200b", "\\u{200b}"]
    value = dict.fromkeys(names, 1)

    assert len(named_values(value)) == len(names)
    assert "" not in named_values(value)


def test_the_tool_that_asks_is_named_by_the_message_that_started_it() -> None:
    """A path only has a number; the state has the call."""
    sent = {"node": "tools", "arg": {"tool_call": _call(amount=3)}}
    found = _decide(_asked("Go on?"), {"resume": "yes"}, path=_PUSH, __pregel_tasks=[sent])

    assert found.questions[0].asker == "Tool refund"
    assert found.questions[0].calls[0].arguments[0].lines == ("3",)


def test_each_question_has_its_own_answer() -> None:
    """Answers by id are shown below the question that has this id."""
    found = _decide(
        [*_asked("A?"), *_asked("B?", _OTHER)], {"resume": {_OTHER: "to b", _ID: "to a"}}
    )

    assert [(each.text, each.answer[0].lines) for each in found.questions] == [
        (("A?",), ("to a",)),
        (("B?",), ("to b",)),
    ]
    assert found.answer == ()


def test_an_answer_to_several_questions_is_shown_once() -> None:
    """It is not guessed which of them it is about."""
    found = _decide([*_asked("A?"), *_asked("B?", _OTHER)], {"resume": "yes"})

    assert [each.answer for each in found.questions] == [(), ()]
    assert [each.lines for each in found.answer] == [("yes",)]


def test_an_answer_that_does_more_says_so() -> None:
    """A command may also change the state."""
    found = _decide(_asked("A?"), {"resume": "yes", "update": {"limit": 10}})

    assert found.differences == ("The answer does more than answer: it also sets update.",)
    assert found.answer[0].name == "update"


def test_another_answer_to_the_same_checkpoint_is_named() -> None:
    """Whoever denied the first one is not asked for the second in silence."""
    team = Team(Deployment())
    team.thread().save({}, id="root", question=_asked("A?"), world=READ)
    team.ask(answer={"resume": "no"}, world=READ)
    team.later(minutes=1)
    request = team.ask(answer={"resume": "yes"}, world=READ)
    store = team.store("ann")
    examined = examine(store, store.request(request.id), states=True)
    found = read_decision(examined.shown, examined)

    (said,) = found.differences
    assert said.endswith("for the same checkpoint has another answer: no")


@pytest.mark.parametrize("arguments", ["'{\"eur\": 42}'", "{'eur': 42}"])
def test_a_call_of_agent_framework_is_read_from_its_text(arguments: str) -> None:
    """The text that a statement binds holds the call, also where the state is not."""
    call = f"Content(name='pay', arguments={arguments})"
    text = f"Content(type='function_approval_request', function_call={call})"
    held = {"type": "Content", "sha256": "0" * 64, "text": text}
    answer = {"$object": {**held, "text": text.replace("request", "response").replace("42", "43")}}
    found = _decide(_asked({"$object": held}), {"responses": {_ID: answer}})
    (question,) = found.questions

    assert [(each.name, each.lines) for each in question.calls[0].arguments] == [("eur", ("42",))]
    assert question.answer[0].lines == ("reject",)
    assert _fields(question.answer)["function_call"][0] == "{"
    (said,) = found.differences
    assert said.startswith("The answer names another call than the question. ")


_CALL: dict[str, Any] = {
    "type": "function_call",
    "call_id": "c",
    "name": "pay",
    "arguments": '{"eur": 12}',
    "hosted": False,
    "additional_properties": {},
}
_ASKED = {
    "type": "function_approval_request",
    "id": "x",
    "user_input_request": True,
    "function_call": _CALL,
}
_RESPONSE = {"type": "function_approval_response", "approved": True, "id": "x"}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"function_call": _CALL}, {}),
        ({"function_call": {**_CALL, "arguments": {"eur": 12}}}, {}),
        ({"function_call": {**_CALL, "arguments": {"eur": 9}}}, {"function_call": None}),
        (
            {"function_call": {**_CALL, "arguments": {"eur": 9}}, "args": {"eur": 12}},
            {"function_call": None, "args": None},
        ),
        (
            {"function_call": {**_CALL, "edited_action": {"eur": 12}}},
            {"function_call": None},
        ),
        ({"function_call": "pay 9999"}, {"function_call": ("pay 9999",)}),
        ({"function_call": None}, {"function_call": ("null",)}),
    ],
)
def test_an_approval_that_names_another_call_changes_nothing(given: Any, shown: Any) -> None:
    """Agent Framework runs the call that it has stored; what else an answer holds is shown."""
    found = _decide(_asked(_ASKED), {"resume": {_ID: _RESPONSE | given}})
    fields = _fields(found.questions[0].answer)

    assert fields.pop("") == ("approve",)
    assert fields.keys() == shown.keys()
    assert all(fields[name] == lines for name, lines in shown.items() if lines)
    assert [each[:30] for each in found.differences] == ["The answer names another call "][
        : "function_call" in shown
    ]


def test_what_is_beside_a_call_that_waits_for_approval_is_shown() -> None:
    """The short form of the request, the call and the response hides nothing else."""
    asked = _ASKED | {"approved": True, "function_call": {**_CALL, "hosted": True, "args": 1}}
    reply = _RESPONSE | {"approved": 1, "id": "y", "function_call": asked["function_call"]}
    (question,) = _decide(_asked(asked), {"resume": {_ID: reply}}).questions

    assert _fields(question.fields) == {
        "approved": ("true",),
        "function_call: hosted": ("true",),
        "function_call: args": ("1",),
    }
    assert _fields(question.answer) == {"": ("reject",), "approved": ("1",), "id": ("y",)}


@pytest.mark.parametrize("held", [None, SimpleNamespace(data=5)])
def test_a_question_that_is_complete_is_not_read_from_the_state(held: Any) -> None:
    """A state that was read with its types does not hold it as plain fields."""
    asked = _asked({"$object": {"type": "Pay", "text": "Pay(eur=5)"}})
    shown: Any = SimpleNamespace(
        release=SimpleNamespace(question=asked, newest=True, held=False, origin=None, deleted=()),
        results=(),
        states=(SimpleNamespace(lane="", fault=None, state=_pending(held)),),
    )

    assert _fields(read_decision(shown).questions[0].fields) == {"(type)": ("Pay",), "eur": ("5",)}


def test_a_question_that_was_cut_is_read_from_the_state() -> None:
    """An adapter saves only the start of a very long one."""
    more = " ... and 9 more characters: sealpoint show THREAD --full --untyped"
    asked = _asked({"$object": {"type": "Pay", "text": f"Pay(eur={more}"}})
    shown: Any = SimpleNamespace(
        release=SimpleNamespace(question=asked, newest=True, held=False, origin=None, deleted=()),
        results=(),
        states=(SimpleNamespace(lane="", fault=None, state=_pending({"data": {"eur": 5}})),),
    )

    assert _fields(read_decision(shown).questions[0].fields) == {"eur": ("5",)}


def _pending(event: Any) -> dict[str, Any]:
    return {"pending_request_info_events": {_ID: event}}


def test_two_questions_with_one_id_share_no_answer() -> None:
    """Nobody knows which of them the run would give it to."""
    found = _decide([*_asked("A?"), *_asked("B?")], {"resume": {_ID: "yes"}})

    assert [each.answer for each in found.questions] == [(), ()]
    assert _fields(found.answer) == {_ID: ("yes",)}


@pytest.mark.parametrize(("signed", "given"), [({"yes": 1}, {"yes": True}), (1, 1.0), (0, False)])
def test_an_answer_that_python_finds_equal_is_another_one(signed: Any, given: Any) -> None:
    """What a person has signed is JSON, where 1 is not true."""
    found = _signed(signed, given)

    assert found.answered_by == "Answered by bot (as the requester claims)"
    assert [each[:30] for each in found.differences] == ["ann has signed another answer:"]
    assert _signed(given, given, "ann").answered_by == "Answered and signed by ann"
    assert _signed(given, given, "ann").differences == ()


def test_a_request_from_before_the_signature_is_not_of_its_person() -> None:
    """The gate asks again in the name of the person, and this one counts no more."""
    found = _signed("yes", "yes")

    assert found.answered_by == "Answered by bot (as the requester claims)"
    assert [each[:35] for each in found.differences] == ["ann has signed this answer since. T"]


def _signed(signed: Any, given: Any, actor: str = "bot") -> Decision:
    statement = SimpleNamespace(
        answer=answer_digest(given), actor=actor, checkpoint=None, world_from=None, world_to=None
    )
    examined: Any = SimpleNamespace(
        request=SimpleNamespace(answer=given, statement=statement),
        fault=None,
        diff=None,
        earlier=(),
        signed=SimpleNamespace(person="ann", answer=signed, digest=answer_digest(signed)),
    )
    return read_decision(None, examined)


@pytest.mark.parametrize(
    "text", ["Pay(a=1, a=2)", "Pay(" * 5000, "Pay(**x)", "__import__('os').system('x')", "\x00"]
)
def test_a_text_that_is_no_plain_object_is_shown_as_it_is(text: str) -> None:
    """Nothing of it is executed, dropped or merged."""
    found = _decide(_asked({"$object": {"type": "Pay", "text": text}}), {"resume": 1})

    shown = "".join("".join(each.lines) for each in found.questions[0].fields)
    shown = shown or "".join(found.questions[0].text)
    assert shown == text.replace("\x00", "\\u{0}")


@pytest.mark.parametrize(
    "question",
    [None, 5, True, [], {}, [[]], [5, "x"], [{"id": [5], "value": None}], {"": {"": []}}],
)
def test_any_json_is_a_question(question: Any) -> None:
    """Nobody can make a request that cannot be shown."""
    found = _decide([question], question or {"resume": question})

    assert found.has_answer
    assert isinstance(question_line([question]), str)
    assert isinstance(answer_line(question, [question]), str)


def _untyped(name: str, fields: dict[str, Any]) -> UntypedValue:
    return UntypedValue(name=name, version=1, fields=fields)


_NAMES = st.sampled_from(
    [
        *("id", "value", "resume", "responses", "type", "args", "name", "decisions", "edit"),
        *("action", "action_requests", "review_configs", "allowed_decisions", "action_name"),
        *("description", "edited_action", "function_call", "tool_calls", "tool_call_id"),
        *("tool_call", "arguments", "function_approval_request", "function_approval_response"),
        *("approved", "text", "$object", "__interrupt__"),
    ]
)
_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _NAMES
_ODD = st.builds(pow, st.just(10), st.just(5000)) | st.just((1, {2}))
_JUNK = st.recursive(
    _PLAIN | _ODD,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_NAMES, inner, max_size=5)
        | st.builds(_untyped, _NAMES, st.dictionaries(_NAMES, inner, max_size=3))
    ),
    max_leaves=30,
)


@settings(max_examples=examples(500), deadline=None)
@given(question=_JUNK, answer=_JUNK, messages=_JUNK, sent=_JUNK, writes=_JUNK)
def test_nobody_can_make_a_request_that_breaks_the_page(
    question: Any, answer: Any, messages: Any, sent: Any, writes: Any
) -> None:
    """Whoever cannot be shown a request cannot deny it either."""
    state = {"channel_values": {"messages": messages, "__pregel_tasks": sent}}
    result = SimpleNamespace(question=question, path=_PUSH)
    release = SimpleNamespace(
        question=question, newest=True, held=False, origin=None, deleted=(), lane=""
    )
    shown: Any = SimpleNamespace(
        release=release,
        results=(SimpleNamespace(lane="", result=result, value=writes, fault=None),),
        states=(SimpleNamespace(lane="", state=state, fault=None),),
    )
    statement = SimpleNamespace(
        answer="0", actor=None, checkpoint="0", world_from=None, world_to=None
    )
    request = SimpleNamespace(answer=answer, statement=statement)
    examined: Any = SimpleNamespace(
        request=request,
        fault=None,
        diff=None,
        earlier=(),
        signed=SimpleNamespace(person="ann", answer=question, digest="1"),
    )
    found = read_decision(shown, examined)
    lines = question_line(question), answer_line(answer, question)

    assert found.has_answer == (answer is not None)
    assert all(line.isprintable() for line in lines)
    read_decision(shown, masking=SECRETS)


def test_secrets_of_a_question_are_hidden_where_nobody_approves() -> None:
    """The page of a thread masks them; the page of a request must not."""
    team = Team(Deployment())
    asked = _asked({"to": "acme", "nested": {"api_token": "s3"}, "token": "s4"})
    team.thread().save({}, id="root", question=asked, world=READ)
    thread = team.store("ann").thread("t")
    shown = read_release(thread, thread.release())

    assert "s4" in str(read_decision(shown))
    hidden = str(read_decision(shown, masking=SECRETS))
    assert "acme" in hidden
    assert "s3" not in hidden
    assert "s4" not in hidden


def test_forty_requests_that_differ_in_the_middle_can_be_told_apart() -> None:
    """What is shortened is what they share."""
    same = "Please review this refund for a customer who has been with us for a very long time: "
    lines = [f"{same}order A-{number}, {'as agreed ' * 20}" for number in range(40)]
    short = shorten_alike(lines, 90)

    assert len(set(short)) == len(lines)
    assert max(map(len, short)) <= 100
    assert shorten_alike(["short"], 90) == ["short"]


def test_lines_for_lists_name_calls_and_answers() -> None:
    """One line is enough to see what is asked, and what the answer is."""
    answer = {"resume": {"decisions": [{"type": "reject", "message": "too much"}]}}

    assert question_line(_review(order="A-17", amount=120)) == "refund(order: A-17, amount: 120)"
    assert answer_line(answer) == "reject, message: too much"
    assert answer_line({"resume": {_ID: "yes"}}, _asked("A?")) == "yes"
    assert question_line(None) == answer_line(None) == ""
