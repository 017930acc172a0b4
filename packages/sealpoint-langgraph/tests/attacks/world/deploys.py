# SPDX-License-Identifier: Apache-2.0
"""Deploys of a program: every way to change what it does, and ways to change only how it looks.

The program is a package with an agent, a graph around it, and the forms in which Python lets code
hide: slots, sets, metaclasses, validators, callbacks, names that are looked up at run time. What it
is set up with it reads from a file that is not part of the package, so that a setting can change
while the code stays the same.
"""

import ast
import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

AGENT = '''\
"""An agent that pays."""

import collections
import contextvars
import functools
import json
import os
import pathlib
import types
import weakref
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ContextEditingMiddleware,
    FilesystemFileSearchMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, tool
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import CachePolicy, RetryPolicy
from pydantic import BaseModel, field_validator

from sp_deploy import tools
from sp_deploy.tools import shelf

HERE = pathlib.Path(__file__).parent
SETTINGS = json.loads(pathlib.Path(os.environ["SP_DEPLOY_SETTINGS"]).read_text())


def joined(left, right):
    """Reduce."""
    return right if right else left


class State(TypedDict, total=False):
    text: Annotated[str, joined]


class Arguments(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def small(cls, value):
        if value > 100:
            raise ValueError(value)
        return value


class Order(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def positive(cls, value):
        return abs(value)


class Model(GenericFakeChatModel):
    model_name: str = "small"
    temperature: float = 0.0

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=list(tools), **kwargs)


class Slotted:
    __slots__ = ("call",)

    def __init__(self, call):
        self.call = call


class Pair(NamedTuple):
    left: int
    right: int

    def total(self):
        return self.left + self.right


class Rows(list):
    def first(self):
        return self[0]


class Meta(type):
    def __call__(cls, *given):
        return super().__call__(*given)


class Made(metaclass=Meta):
    limit: int = 3

    @property
    def doubled(self):
        return self.limit * 2

    @staticmethod
    def fixed(text, *rest, flag=False, **named):
        return text, rest, flag, named

    @classmethod
    def named(cls):
        return cls.__name__

    def __getattr__(self, name):
        return name


@dataclass(frozen=True)
class Plan:
    steps: tuple[str, ...] = ("look", "pay")

    def __post_init__(self):
        assert self.steps, "no steps"


def hidden(text):
    return text + "!"


def also_hidden(text):
    return text + "?"


SET = {hidden}
FROZEN = frozenset({also_hidden})
QUEUE = collections.deque([hidden])
SPACE = types.SimpleNamespace(call=hidden)
CONTEXT = contextvars.ContextVar("call", default=hidden)
WEAK = weakref.ref(hidden)
MAPPED = map(hidden, ["a"])
SLOTTED = Slotted(also_hidden)
TABLE = {"size": len, "most": max, 3: b"bytes", None: 1.5, True: 2j, "rest": ...}
hidden.inner = also_hidden


def retried(error):
    return isinstance(error, ValueError)


def keyed(state):
    return state["text"]


def failed(error):
    return f"failed: {error}"


def listens(run):
    return None


class Notes(BaseCallbackHandler):
    def on_chain_start(self, *given, **named):
        return None


class Watch(AgentMiddleware):
    def before_model(self, state, runtime):
        return None


@functools.lru_cache
def remembered(text):
    return text.lower()


@tool
def pay(amount: int, to: str = "ann") -> str:
    """Pay somebody."""
    return f"{amount} to {to}"


def looked(text):
    """Look something up."""
    return globals()["hidden"](text) + tools.run(text) + shelf.go(text)


look = StructuredTool.from_function(
    looked,
    handle_tool_error=failed,
    return_direct=SETTINGS["return_direct"],
)
order = StructuredTool.from_function(lambda amount: amount, name="order", description="Order.",
                                     args_schema=Arguments)


async def slow(state):
    async with state as opened:
        async for each in opened:
            yield await each
    result = [x async for x in opened if x]
    yield result


def every(state, /, a=1, *args, b: int = 2, **kwargs) -> dict[str, Any]:
    global COUNT
    total, (first, *others) = 0, state["text"] or "abc"
    for index, letter in enumerate(others):
        if letter == "x" and index > 2 or not letter:
            continue
        elif letter in {"y", "z"}:
            total += index
        else:
            total -= 1
    else:
        total = total * 2 // 3
    while total > 10:
        total >>= 1
        if total == 7:
            break
    try:
        value = {key: len(value) for key, value in kwargs.items() if value is not None}
        assert value or args, "nothing"
    except (KeyError, TypeError) as error:
        raise ValueError(f"bad {error!r:>10} {total + 1}") from error
    except OSError:
        del value
    finally:
        COUNT = total if total else -total
    with open(os.devnull) as one, open(os.devnull, "rb"):
        text = one.read()[1:-1:2]
    match state:
        case {"text": "stop", **rest}:
            return rest
        case {"text": [head, *_]} if head:
            return {"text": head}
        case Pair(left=1) | None:
            return {"text": "pair"}
        case _:
            pass
    if (size := len(text)) < 3 <= a:
        text = (lambda it, n=2: it * n)(text)
    inner = (each for each in text if each.isalpha())
    names = [*inner, *{letter for letter in text}, SLOTTED.call(text)]

    def nested(more):
        nonlocal total
        total = more @ a if False else more ^ ~b
        return total

    late = __import__("sp_deploy.late")
    from . import lazy

    return {"text": "".join(map(str, (nested(size), names, late, lazy.run, remembered(text))))}


def both(state):
    return {"text": [each.call.name for each in HELD]}


async def waits(state):
    return {"text": await state["text"]}


HELD = {Slotted(pay), Slotted(look), Slotted(order)}


def chosen(state):
    return "agent" if state["text"] else "every"


def built():
    limiter = InMemoryRateLimiter(requests_per_second=SETTINGS["rate"])
    model = Model(messages=iter([AIMessage("x")]), rate_limiter=limiter, **SETTINGS["model"])
    wraps = {"edit": ContextEditingMiddleware(), "retry": ModelRetryMiddleware()}
    inner = create_agent(
        model.bind(stop=SETTINGS["stop"]),
        [pay, look, order],
        system_prompt=SystemMessage(SETTINGS["prompt"]),
        response_format=ToolStrategy(Order, handle_errors=SETTINGS["handle_errors"]),
        middleware=[
            HumanInTheLoopMiddleware(interrupt_on=SETTINGS["interrupt_on"]),
            ToolCallLimitMiddleware(**SETTINGS["tool_limit"]),
            ModelCallLimitMiddleware(**SETTINGS["model_limit"]),
            ToolRetryMiddleware(max_retries=SETTINGS["retries"], tools=SETTINGS["retried"]),
            *[wraps[name] for name in SETTINGS["wraps"]],
            PIIMiddleware("order", detector=SETTINGS["detector"]),
            FilesystemFileSearchMiddleware(root_path=HERE / SETTINGS["root"]),
            PIIMiddleware("email", strategy=SETTINGS["strategy"]),
            Watch(),
        ],
    )
    remote = RemoteGraph(SETTINGS["assistant"], url=SETTINGS["url"], api_key="k-1")
    graph = StateGraph(State)
    graph.add_node("agent", inner)
    graph.add_node("remote", remote)
    graph.add_node(
        "every",
        every,
        retry_policy=RetryPolicy(max_attempts=SETTINGS["attempts"], retry_on=retried),
        cache_policy=CachePolicy(key_func=keyed, ttl=SETTINGS["ttl"]),
    )
    graph.add_node("waits", waits, timeout=SETTINGS["timeout"])
    graph.add_node("part", functools.partial(every, a=SETTINGS["most"]))
    graph.add_node("tried", RunnableLambda(both).with_retry(stop_after_attempt=SETTINGS["tries"]))
    graph.add_node("bound", RunnableLambda(every).bind(a=SETTINGS["most_bound"]))
    graph.add_node("tagged", RunnableLambda(both).with_config(max_concurrency=SETTINGS["wide"]))
    late = init_chat_model(model_provider="openai", configurable_fields=SETTINGS["open"])
    graph.add_node("late", RunnableLambda(both) | late)
    graph.add_edge(START, "every")
    graph.add_conditional_edges("every", chosen, SETTINGS["ways"])
    compiled = graph.compile(
        interrupt_before=SETTINGS["interrupt_before"], interrupt_after=SETTINGS["interrupt_after"]
    )
    return compiled.with_config(
        callbacks=[Notes()],
        configurable=SETTINGS["configurable"],
        recursion_limit=SETTINGS["recursion_limit"],
    )


graph = built()
'''
_TOOLS = '''\
"""Tools."""

from os.path import basename as named


def __getattr__(name):
    return named(name)


def run(text):
    return named(text)


class Shelf:
    def go(self, text):
        return text


shelf = Shelf()
'''
_RUN = "def run(text):\n    return text\n"
_SOLO = "import os\n\n\ndef unused(text):\n    return os.environ[text]\n"
FILES = {
    "__init__.py": "",
    "agent.py": AGENT,
    "tools.py": _TOOLS,
    "lazy.py": _RUN,
    "late.py": _RUN,
    "jobs/__init__.py": "",
    "jobs/nightly.py": _SOLO,
}
"""The package `sp_deploy`."""

SETTINGS: dict[str, Any] = {
    "assistant": "payer",
    "attempts": 3,
    "detector": "[0-9]{8}",
    "configurable": {"account": "main"},
    "handle_errors": True,
    "interrupt_after": [],
    "interrupt_before": ["agent"],
    "interrupt_on": {"pay": True, "looked": {"allowed_decisions": ["approve", "reject"]}},
    "model": {"model_name": "small", "temperature": 0.0},
    "model_limit": {"run_limit": 5},
    "most": 1,
    "most_bound": 1,
    "open": ["model"],
    "prompt": "Be careful.",
    "rate": 2.0,
    "recursion_limit": 20,
    "retried": ["looked"],
    "retries": 2,
    "return_direct": False,
    "root": "data",
    "stop": ["END"],
    "strategy": "redact",
    "timeout": 30.0,
    "tool_limit": {"tool_name": "pay", "run_limit": 1},
    "tries": 2,
    "ttl": 60,
    "url": "https://graphs.example",
    "ways": {"agent": "agent", "every": "every"},
    "wide": 1,
    "wraps": ["edit", "retry"],
}

SETTINGS_CHANGED: dict[str, dict[str, Any]] = {
    "an account": {"configurable": {"account": "other"}},
    "an assistant": {"assistant": "other"},
    "attempts": {"attempts": 30},
    "errors of structured output": {"handle_errors": False},
    "no stop before": {"interrupt_before": []},
    "a stop after": {"interrupt_after": ["every"]},
    "a person asked no more": {"interrupt_on": {"pay": False, "looked": True}},
    "a tool asked no more": {"interrupt_on": {"pay": True}},
    "another decision allowed": {
        "interrupt_on": {"pay": True, "looked": {"allowed_decisions": ["approve", "edit"]}}
    },
    "a model": {"model": {"model_name": "large", "temperature": 0.0}},
    "a temperature": {"model": {"model_name": "small", "temperature": 1.0}},
    "calls of the model": {"model_limit": {"run_limit": 500}},
    "calls of a thread": {"model_limit": {"run_limit": 5, "thread_limit": 7}},
    "a prompt": {"prompt": "Be fast."},
    "steps": {"recursion_limit": 2_000},
    "retries of tools": {"retries": 9},
    "an answer given at once": {"return_direct": True},
    "what a model stops at": {"stop": ["STOP"]},
    "what becomes of an address": {"strategy": "block"},
    "a time": {"timeout": 3_000.0},
    "no time": {"timeout": None},
    "calls of a tool": {"tool_limit": {"tool_name": "pay", "run_limit": 1_000}},
    "calls of another tool": {"tool_limit": {"tool_name": "order", "run_limit": 1}},
    "calls of any tool": {"tool_limit": {"run_limit": 1}},
    "how a limit ends": {
        "tool_limit": {"tool_name": "pay", "run_limit": 1, "exit_behavior": "error"}
    },
    "how long something is kept": {"ttl": 6_000},
    "a server": {"url": "https://others.example"},
    "a port": {"url": "https://graphs.example:8443"},
    "what is found": {"detector": "[0-9]{9}"},
    "tools tried again": {"retried": ["pay"]},
    "another folder": {"root": "jobs"},
    "a folder outside": {"root": "/srv"},
    "the order of what wraps": {"wraps": ["retry", "edit"]},
    "what wraps no more": {"wraps": ["edit"]},
    "ways that are swapped": {"ways": {"agent": "every", "every": "agent"}},
    "what a part is given": {"most": 100},
    "what is bound": {"most_bound": 100},
    "how often it is tried": {"tries": 20},
    "how much at once": {"wide": 100},
    "what a caller may choose": {"open": ["model", "temperature"]},
    "how fast": {"rate": 200.0},
    "no encryption": {"url": "http://graphs.example"},
}
"""Each changes what the agent may do, and no code."""


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Every field of a program that has a value: the node, its field, and a place in a list."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if name in ("ctx", "type_comment", "kind") or value is None:
                continue
            if isinstance(value, list):
                yield from ((node, name, place) for place in range(len(value)))
            else:
                yield node, name, None


_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Eq: ast.NotEq,
    ast.Gt: ast.GtE,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.IsNot: ast.Is,
    ast.Not: ast.UAdd,
    ast.USub: ast.UAdd,
    ast.Invert: ast.USub,
    ast.RShift: ast.LShift,
}


def _changed(value: Any, name: str) -> Any:
    """Another value that may stand in its place; None if there is none."""
    if isinstance(value, ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
        return _OPERATORS.get(type(value), ast.Sub if type(value) is not ast.Sub else ast.Add)()
    if isinstance(value, ast.expr):
        return ast.Call(ast.Name("id", ast.Load()), [value], []) if name in _VALUES else None
    if isinstance(value, ast.stmt):
        return ast.Expr(ast.Constant(0)) if isinstance(value, ast.Pass) else ast.Pass()
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}_" if value != "*" else None
    if isinstance(value, int | float | complex):
        return value + 1 if name == "value" else None
    return value + b"!" if isinstance(value, bytes) else None


_VALUES = frozenset(
    {"args", "comparators", "elt", "iter", "key", "left", "right", "test", "value", "values"}
)


def code_changes(text: str, of_each_form: int | None = None) -> Iterator[tuple[str, str]]:
    """Programs that differ from one in a single place, each with a name for the place.

    A form is what kind of node stands in which field of which other; of each are as many as asked
    for, the first ones, or all.
    """
    tree, seen = ast.parse(text), {ast.unparse(ast.parse(text))}
    made_of: Counter[tuple[str, str, str]] = Counter()
    for number, (node, name, place) in enumerate(_places(tree)):
        held = getattr(node, name)
        value = held if place is None else held[place]
        form = (type(node).__name__, name, type(value).__name__)
        other = _changed(value, name)
        if other is None or (of_each_form is not None and made_of[form] >= of_each_form):
            continue
        if place is None:
            setattr(node, name, other)
        else:
            held[place] = other
        try:
            made = ast.unparse(tree)
            compile(made, "deploy", "exec")
        except (SyntaxError, ValueError, TypeError, AttributeError):
            made = ""  # nothing of that kind can stand there
        if place is None:
            setattr(node, name, value)
        else:
            held[place] = value
        if made and made not in seen:
            seen.add(made)
            made_of[form] += 1
            line = getattr(node, "lineno", 0)
            yield f"{number}: {type(node).__name__}.{name} in line {line}", made


def looks(text: str, seed: int) -> Iterator[tuple[str, str]]:
    """The same program, written in other ways."""
    order, lines = random.Random(seed), text.split("\n")  # noqa: S311 - no secret
    yield "written from its tree", ast.unparse(ast.parse(text))
    yield "lines that end otherwise", text.replace("\n", "\r\n")
    yield "a mark of the encoding", "\ufeff" + text
    yield "comments around", f"# before\n{text}\n# after\n"
    yield "two blanks at the end", text.rstrip("\n") + "\n\n\n"
    yield "tabs", "\n".join(_tabbed(line) for line in lines)
    tree = ast.parse(text)
    inside = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for line in range(getattr(node, "lineno", 0), getattr(node, "end_lineno", 0))
    }
    yield (
        "a comment in every line",
        "\n".join(
            line if number in inside else f"{line}  # {number}"
            for number, line in enumerate(lines, 1)
        ),
    )
    for number in range(12):
        yield f"imports in another order {number}", _shuffled(text, order)


def _tabbed(line: str) -> str:
    rest = line.lstrip(" ")
    depth, more = divmod(len(line) - len(rest), 4)
    return "\t" * depth + " " * more + rest


def _shuffled(text: str, order: random.Random) -> str:
    """The program with the imports at its beginning in another order, names in them as well."""
    tree = ast.parse(text)
    imports = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    order.shuffle(imports)
    first, last = tree.body.index(imports[0]), tree.body[0].end_lineno or 1
    for each in imports:
        order.shuffle(each.names)
        last = max(last, each.end_lineno or 0)
    del first
    head = ast.unparse(tree.body[0])
    rest = "\n".join(text.split("\n")[last:])
    return "\n".join([head, *map(ast.unparse, imports), rest])


def settings_text(changed: dict[str, Any]) -> str:
    """The file of settings, some of them changed."""
    return json.dumps({**SETTINGS, **changed})
