# SPDX-License-Identifier: Apache-2.0
"""Messages as a conversation: found wherever they lie, by what frameworks store, and whole."""

import subprocess
import sys
from typing import Any

import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from sealpoint import Registry
from sealpoint.codec import UntypedValue
from sealpoint.errors import UsageError
from sealpoint.views import conversation
from sealpoint.views.conversation import (
    PartKind,
    fields_of,
    find_conversations,
    read_conversation,
)
from sealpoint.views.tree import StateTree
from sealpoint_agent_framework.framework import registry as agent_framework_registry
from sealpoint_langgraph.framework import registry as langgraph_registry

_HOSTILE = "\x1b[2J\u202egnp\u200b <script>alert(1)</script>\r\nrole: system"
_LANGGRAPH = [
    SystemMessage("Be good."),
    HumanMessage("Pay it.\nNow.", name="bob"),
    AIMessage(
        [
            {"type": "text", "text": "I pay."},
            {"type": "thinking", "thinking": "is it right?"},
            {"type": "tool_use", "id": "c1", "name": "pay", "input": {"to": "acme"}},
            {"type": "image_url", "image_url": {"url": "data:,x"}},
        ],
        tool_calls=[{"id": "c1", "name": "pay", "args": {"to": "acme"}}],
        invalid_tool_calls=[{"id": "c2", "name": "p", "args": "{", "error": "no JSON"}],
        response_metadata={"model": "m-1"},
    ),
    ToolMessage("paid", tool_call_id="c1", name="pay", artifact={"receipt": 7}),
    ToolMessage("no", tool_call_id="c2", status="error"),
    ChatMessage(content="hm", role="critic"),
    AIMessageChunk(content="do"),
    RemoveMessage(id="m9"),
]
_AGENT_FRAMEWORK = [
    Message("user", ["Pay it."], author_name="bob"),
    Message(
        "assistant",
        [
            Content.from_text_reasoning(text="is it right?"),
            Content.from_text("I pay."),
            Content.from_function_call(call_id="c1", name="pay", arguments='{"to": "acme"}'),
            Content.from_uri("https://example.test/x.png", media_type="image/png"),
        ],
        author_name="payer",
    ),
    Message("tool", [Content.from_function_result(call_id="c1", result="paid")]),
]


def _untyped(registry: Registry, value: Any) -> Any:
    return Registry().showing_untyped("").decode(registry.encode(value))


def _read(value: Any) -> list[tuple[str, str, list[tuple[str, str, str, str, bool]]]]:
    tree = StateTree({"channel": {"messages": value}})
    (found,) = find_conversations(tree).found
    assert found.path == 'state["channel"]["messages"]'
    assert found.messages == len(value)
    return [
        (
            each.role,
            each.author,
            [(str(p.kind), p.name, p.call, p.text, p.failed) for p in each.parts],
        )
        for each in read_conversation(tree, found.at)
    ]


def test_messages_of_langgraph_are_a_conversation() -> None:
    """Texts, calls with arguments, results and all the rest, in the order in which they lie."""
    said = _read(_untyped(langgraph_registry, _LANGGRAPH))

    assert said == [
        ("system", "", [("text", "", "", "Be good.", False)]),
        ("user", "bob", [("text", "", "", "Pay it.\nNow.", False)]),
        (
            "assistant",
            "",
            [
                ("text", "", "", "I pay.", False),
                ("reasoning", "thinking", "", 'value: {"thinking": "is it right?"}', False),
                (
                    "other",
                    "image_url",
                    "",
                    'value: {"type": "image_url", "image_url": {"url": "data:,x"}}',
                    False,
                ),
                ("tool-call", "pay", "c1", 'arguments: {"to": "acme"}', False),
                (
                    "tool-call",
                    "p",
                    "c2",
                    'arguments: {"arguments": "{", "error": "no JSON"}',
                    True,
                ),
                ("details", "", "", 'details: {"response_metadata": {"model": "m-1"}}', False),
            ],
        ),
        (
            "tool",
            "pay",
            [
                ("tool-result", "", "c1", "paid", False),
                (
                    "details",
                    "",
                    "",
                    'details: {"artifact": {"receipt": 7}, "status": "success"}',
                    False,
                ),
            ],
        ),
        (
            "tool",
            "",
            [
                ("tool-result", "", "c2", "no", True),
                ("details", "", "", 'details: {"status": "error"}', False),
            ],
        ),
        ("critic", "", [("text", "", "", "hm", False)]),
        ("assistant", "", [("text", "", "", "do", False)]),
        ("remove", "", [("details", "", "", 'details: {"id": "m9"}', False)]),
    ]


def test_attributes_that_a_message_has_beyond_its_fields_are_shown() -> None:
    """LangChain lets a message hold any; they are stored after its fields."""
    said = _read(_untyped(langgraph_registry, [HumanMessage("Hi.", to="evil")]))

    assert said[0][2][1] == ("details", "", "", 'details: {"to": "evil"}', False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("app.batch", [{"pay": 1}, {"pay": 9999}]),
        ("app.batch", [{"pay": 1}, 3]),
        ("langchain.human", [{"content": "Hi."}, {"pay": 9999}]),
        ("langchain.human", [{"content": "Hi."}, 3, {"a": 1}]),
    ],
)
def test_only_the_stored_form_of_a_message_is_taken_for_one(name: str, value: Any) -> None:
    """Any other object may have a field that looks like it, and all of it is shown."""
    held = UntypedValue(name=name, version=1, fields={"value": value})

    assert fields_of(held) == {"value": value}


def test_messages_of_agent_framework_are_a_conversation() -> None:
    """Contents become parts; a result that is there twice is told once."""
    said = _read(_untyped(agent_framework_registry, _AGENT_FRAMEWORK))

    assert said == [
        ("user", "bob", [("text", "", "", "Pay it.", False)]),
        (
            "assistant",
            "payer",
            [
                ("reasoning", "", "", "is it right?", False),
                ("text", "", "", "I pay.", False),
                ("tool-call", "pay", "c1", 'arguments: {"to": "acme"}', False),
                (
                    "other",
                    "uri",
                    "",
                    'value: {"uri": "https://example.test/x.png", "media_type": "image/png"}',
                    False,
                ),
            ],
        ),
        ("tool", "", [("tool-result", "", "c1", "paid", False)]),
    ]


@pytest.mark.parametrize(
    ("registry", "messages"),
    [(langgraph_registry, _LANGGRAPH), (agent_framework_registry, _AGENT_FRAMEWORK)],
)
def test_messages_read_the_same_with_their_types_and_without(
    registry: Registry, messages: list[Any]
) -> None:
    """Whether a state was loaded with a framework's types changes nothing about what was said."""
    said = _read(_untyped(registry, messages))
    known = _read(registry.decode(registry.encode(messages)))

    for with_types, without in zip(known, said, strict=True):
        assert with_types[:2] == without[:2]
        assert [part for part in with_types[2] if part[0] != "details"] == [
            part for part in without[2] if part[0] != "details"
        ]


def test_maps_with_a_role_are_a_conversation() -> None:
    """As the interfaces of model providers take messages: OpenAI's and Anthropic's forms."""
    call = {"name": "pay", "arguments": '{"to": "acme"}'}
    used = {"type": "tool_use", "id": "c2", "name": "pay", "input": {"to": "eve"}}
    failed = {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True}
    said = _read(
        [
            {"role": "developer", "content": "Be good."},
            {"role": "user", "name": "bob", "content": [{"type": "text", "text": "Pay it."}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "paid"},
            {"role": "assistant", "content": [used], "model": "m-1"},
            {"role": "user", "content": [failed]},
        ]
    )

    assert said == [
        ("developer", "", [("text", "", "", "Be good.", False)]),
        ("user", "bob", [("text", "", "", "Pay it.", False)]),
        ("assistant", "", [("tool-call", "pay", "c1", 'arguments: {"to": "acme"}', False)]),
        ("tool", "", [("tool-result", "", "c1", "paid", False)]),
        (
            "assistant",
            "",
            [
                ("tool-call", "pay", "c2", 'arguments: {"to": "eve"}', False),
                ("details", "", "", 'details: {"model": "m-1"}', False),
            ],
        ),
        ("user", "", [("tool-result", "", "c2", "no", True)]),
    ]


def test_no_framework_is_needed_to_read_a_conversation() -> None:
    """What shows messages imports none of what stored them."""
    code = "import sys, sealpoint.views.conversation; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}

    assert "sealpoint" in roots
    assert not roots & {"langchain_core", "langgraph", "agent_framework", "pydantic"}


@pytest.mark.parametrize("role", ["user", _HOSTILE])
def test_a_hostile_text_is_whole_and_visible(role: str) -> None:
    """What somebody said cannot pass for another message or another part of one."""
    message = UntypedValue(
        name="agent_framework.message",
        version=1,
        fields={"role": role, "contents": [_text(_HOSTILE)], "author_name": _HOSTILE},
    )
    ((shown_role, author, parts),) = _read([message])

    assert shown_role.isprintable()
    assert author.isprintable()
    assert parts[0][3] == (
        "\\u{1b}[2J\\u{202e}gnp\\u{200b} <script>alert(1)</script>\\u{d}\nrole: system"
    )


def _text(text: Any) -> UntypedValue:
    return UntypedValue(
        name="agent_framework.content", version=1, fields={"type": "text", "text": text}
    )


_NAMES = st.sampled_from(
    [
        *("content", "type", "name", "id", "role", "contents", "text", "tool_calls", "arguments"),
        *("tool_call_id", "status", "args", "call_id", "result", "items", "value", "input"),
    ]
)
_JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.text(max_size=5),
        st.sampled_from(["tool_use", "function_call", "x_result", "x_call", "thinking", "{}"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(_NAMES, inner, max_size=4),
        st.builds(
            lambda name, fields: UntypedValue(name=name, version=1, fields=fields),
            st.sampled_from(["agent_framework.content", "langchain.ai", "other.thing"]),
            st.dictionaries(_NAMES, inner, max_size=4),
        ),
    ),
    max_leaves=15,
)


@given(
    st.lists(
        st.builds(
            lambda name, fields: UntypedValue(name=name, version=1, fields=fields),
            st.sampled_from(sorted(conversation._ROLES)),
            st.dictionaries(_NAMES, _JUNK, max_size=6),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_fields_of_any_kind_are_shown_and_break_nothing(messages: list[Any]) -> None:
    """Whoever writes states decides what is in the fields of messages; nobody falls over it."""
    tree = StateTree({"messages": messages})

    for found in find_conversations(tree).found:
        for each in read_conversation(tree, found.at):
            assert each.role.isprintable()
            for part in each.parts:
                assert part.text.replace("\n", "").isprintable()
                assert part.name.isprintable()
                assert part.call.isprintable()


def test_no_text_of_a_message_is_left_out() -> None:
    """Fields that nobody expects are told as details, in whatever kind of message."""
    fields = {"content": "a", "surprise": {"hidden": "marker-1"}, "tool_calls": "marker-2"}
    unexpected = [
        UntypedValue(name="langchain.ai", version=1, fields={"value": [fields, 0]}),
        UntypedValue(
            name="agent_framework.message",
            version=1,
            fields={
                "role": "user",
                "contents": [
                    UntypedValue(
                        name="agent_framework.content",
                        version=1,
                        fields={"type": "text", "text": "b", "annotations": ["marker-3"]},
                    ),
                    "marker-4",
                    7,
                ],
                "odd": "marker-5",
            },
        ),
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": "c", "odd": "marker-6"}],
            "tool_calls": [{"function": {"name": "pay", "arguments": "{}", "odd": "marker-7"}}],
        },
    ]

    said = repr(_read(unexpected))

    assert [n for n in range(1, 8) if f"marker-{n}" not in said] == []


def test_a_list_of_something_else_is_no_conversation() -> None:
    """Only lists in which everything is a message are read as one."""
    tree = StateTree({"empty": [], "mixed": [_LANGGRAPH[0], 1], "plain": [{"role": "user"}]})

    assert find_conversations(tree).found == ()
    with pytest.raises(UsageError, match="there is no list of messages"):
        read_conversation(tree, "1")


def test_a_long_conversation_is_read_in_pages() -> None:
    """As many messages as were asked for, from where it was asked, each with its address."""
    messages = [_untyped(langgraph_registry, HumanMessage(f"n{n}")) for n in range(30)]
    tree = StateTree(messages)

    page = read_conversation(tree, "", offset=28, limit=10)

    assert [(each.at, each.parts[0].text) for each in page] == [("28", "n28"), ("29", "n29")]
    assert page[0].parts[0].kind is PartKind.TEXT
    assert page[0].as_dict()["parts"][0]["text"] == "n28"
