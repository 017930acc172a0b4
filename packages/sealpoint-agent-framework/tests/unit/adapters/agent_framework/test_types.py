# SPDX-License-Identifier: Apache-2.0
"""The framework's types come back as they were, and nothing else is ever built."""

import copy
import subprocess
import sys
from typing import Any

import pytest
from agent_framework import (
    AgentResponse,
    AgentSession,
    Content,
    Message,
    WorkflowCheckpoint,
    WorkflowEvent,
)
from agent_framework._types import _CONTENT_TYPES

from sealpoint.codec import Registry
from sealpoint.errors import RuleInvalid, TypeNotAllowed, ValueNotAllowed
from sealpoint_agent_framework import framework
from sealpoint_agent_framework._framework_types import WORKFLOW_TYPES, allow_framework_types
from tests.unit.adapters.agent_framework.samples import CONTENTS, SAMPLES, registry, same_parts

REGISTRY = registry()


def test_every_type_has_a_sample_and_a_reason() -> None:
    """No type is allowed that these tests do not look at, and each says why in a sentence."""
    assert {type(value) for value in SAMPLES} == {each.cls for each in WORKFLOW_TYPES}
    for each in WORKFLOW_TYPES:
        assert each.name.startswith("agent_framework.")
        assert each.reason.endswith(".")


def test_every_kind_of_content_has_a_sample() -> None:
    """A kind that the framework adds is looked at here."""
    assert {each.type for each in CONTENTS} == set(_CONTENT_TYPES)


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    """Every attribute, also private ones, and the same bytes again."""
    before = copy.deepcopy(value)
    data = REGISTRY.encode(value)
    found = REGISTRY.decode(data)

    assert same_parts(found, value)
    assert same_parts(value, before)
    assert REGISTRY.encode(found) == data


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_nothing_is_shared_between_two_values(value: Any) -> None:
    """An object that was loaded has containers of its own."""
    data = REGISTRY.encode(value)
    first, second = REGISTRY.decode(data), REGISTRY.decode(data)
    for item in vars(first).values() if hasattr(first, "__dict__") else ():
        if isinstance(item, dict):
            item["mine"] = 1
        elif isinstance(item, list):
            item.append(1)

    assert same_parts(second, value)
    assert same_parts(REGISTRY.decode(data), value)


def test_rules_are_added_once() -> None:
    """A registry that has them is left alone, and a rule of the application is respected."""
    mine = Registry()
    mine.allow(Message, name="mine.message", encode=lambda _: None, decode=lambda _: Message("x"))
    allow_framework_types(mine)
    before = mine.rules
    allow_framework_types(mine)

    assert mine.rules == before
    assert mine.rule_of(Message) is mine.rule_named("mine.message")


def test_a_name_that_is_taken_is_refused() -> None:
    """Two types under one name would be mixed up."""
    mine = Registry()
    mine.allow(
        type("Own", (), {}),
        name="agent_framework.message",
        encode=lambda _: None,
        decode=lambda _: None,
    )

    with pytest.raises(RuleInvalid, match=r"agent_framework\.message"):
        allow_framework_types(mine)


def test_the_registry_to_look_with_has_them_all() -> None:
    """What `--registry` names on the command line."""
    assert {rule.cls for rule in framework.registry.rules} == {each.cls for each in WORKFLOW_TYPES}


def test_live_objects_of_a_client_are_not_stored() -> None:
    """`raw_representation` comes back as None, as from the framework's own storages."""
    live = object()
    annotation: Any = {"type": "citation", "raw_representation": live}
    content = Content.from_text("a", annotations=[annotation], raw_representation=live)
    value = AgentResponse(
        messages=[Message("user", [content], raw_representation=live)], raw_representation=[live]
    )
    found = REGISTRY.decode(REGISTRY.encode(value))

    assert found.raw_representation is None
    assert found.messages[0].raw_representation is None
    assert found.messages[0].contents[0].raw_representation is None
    assert found.messages[0].contents[0].annotations == [{"type": "citation"}]
    assert content.annotations == [annotation]


def test_what_comes_back_is_of_use() -> None:
    """Methods of the framework work on what was loaded."""
    session = AgentSession(session_id="s1")
    session.state["messages"] = [Message("user", ["hello"])]
    checkpoint = WorkflowCheckpoint(
        "bills",
        "hash",
        pending_request_info_events={"r1": WorkflowEvent.request_info("r1", "x", 42, bool)},
        state={"session": session},
    )
    found = REGISTRY.decode(REGISTRY.encode(checkpoint))
    request = found.pending_request_info_events["r1"]

    assert (request.request_id, request.request_type, request.response_type) == ("r1", int, bool)
    assert found.state["session"].session_id == "s1"
    assert AgentSession.from_dict(found.state["session"].to_dict()).state["messages"][0].text
    assert copy.deepcopy(found).to_dict().keys() == checkpoint.to_dict().keys()


def test_an_attribute_that_somebody_added_is_not_lost_silently() -> None:
    """It has no place in the form, so the value is refused and the attribute named."""
    message = Message("user", ["hello"])
    message.colour = "red"  # type: ignore[attr-defined]

    with pytest.raises(ValueNotAllowed, match="colour"):
        REGISTRY.encode({"a": message})


def test_a_value_that_could_not_be_loaded_is_not_saved() -> None:
    """The kinds of fields are checked on both ways; the message names the field."""
    message = Message("user", ["hello"])
    message.contents = ["hello"]  # type: ignore[list-item]

    with pytest.raises(ValueNotAllowed, match=r"'contents': expected list or tuple of Content"):
        REGISTRY.encode(message)


def test_a_subclass_is_the_applications() -> None:
    """It needs a rule of its own."""

    class Special(Message):
        pass

    with pytest.raises(TypeNotAllowed, match="Special"):
        REGISTRY.encode(Special("user"))


def test_a_parametrised_object_is_stored_as_any_other() -> None:
    """What `WorkflowEvent[int](...)` leaves in the object says nothing."""
    event = WorkflowEvent[int]("output", data=3)

    assert same_parts(REGISTRY.decode(REGISTRY.encode(event)), event)


def test_orchestrations_are_not_required() -> None:
    """Without that package everything else is allowed."""
    program = (
        "import sys; sys.modules['agent_framework_orchestrations'] = None\n"
        "from sealpoint_agent_framework.framework import registry\n"
        "print(len(registry.rules), any('orchestrations' in each.name for each in registry.rules))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    count = sum("orchestrations" not in each.name for each in WORKFLOW_TYPES)

    assert told.stdout.decode().split() == [str(count), "False"]
