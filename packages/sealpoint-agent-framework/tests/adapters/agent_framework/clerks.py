# SPDX-License-Identifier: Apache-2.0
"""An application whose world is looked at: executors, an agent, tools, conditions, a workflow.

`test_world` edits copies of this file; it also runs as a program, which writes its world.
"""

import sys
from typing import Any, Never

from agent_framework import (
    Agent,
    AgentContext,
    AgentExecutorResponse,
    BaseChatClient,
    Case,
    ChatResponse,
    ContextProvider,
    Default,
    Executor,
    FunctionInvocationLayer,
    MCPStdioTool,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
    tool,
)


class Chat(FunctionInvocationLayer, BaseChatClient):
    """A model that always says the same, with three secrets."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.model = model
        self.api_key = "secret-1"
        self.base_url = "https://user:secret-2@models.example:8443/v1?key=secret-3"

    def _inner_get_response(self, **_: Any) -> Any:
        async def answer() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", ["done"])])

        return answer()


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Move money."""
    return f"paid {amount}"


def limit() -> int:
    """How long an order may be."""
    return 40


class Clerk(Executor):
    """Reads an order, and asks about a long one."""

    @handler
    async def read(self, message: str, ctx: WorkflowContext[str]) -> None:
        """Read an order."""
        if len(message) > limit():
            await ctx.request_info(message, str)
        else:
            await ctx.send_message(message)

    @response_handler
    async def answered(self, request: str, answer: str, ctx: WorkflowContext[str]) -> None:
        """Go on with the answer."""
        await ctx.send_message(f"{request}: {answer}")


class Memo(ContextProvider):
    """Says something before each run."""

    async def before_run(self, **named: Any) -> None:
        """Say it."""
        named["context"].extend_instructions("memo", "Be brief.")


async def audit(context: AgentContext, call_next: Any) -> None:
    """Look at each run."""
    del context
    await call_next()


def is_order(message: Any) -> bool:
    """Whether it is one."""
    return bool(message)


def is_done(message: Any) -> bool:
    """Whether the agent says so."""
    return "done" in message.agent_response.text


@executor(id="file")
async def file(message: str, ctx: WorkflowContext[str]) -> None:
    """Keep it."""
    await ctx.send_message(message.upper())


@executor(id="finish")
async def finish(message: AgentExecutorResponse, ctx: WorkflowContext[Never, str]) -> None:
    """Give it out."""
    await ctx.yield_output(message.agent_response.text)


@executor(id="again")
async def again(message: AgentExecutorResponse, ctx: WorkflowContext[Never, str]) -> None:
    """Give it out, too."""
    await ctx.yield_output(f"again: {message.agent_response.text}")


@executor(id="stamp")
async def stamp(message: str, ctx: WorkflowContext[Never, str]) -> None:
    """Stamp it."""
    await ctx.yield_output(f"{message}, stamped")


def build(*servers: MCPStdioTool) -> Workflow:
    """Build the workflow."""
    writer = Agent(
        Chat("scripted-1"),
        "You write letters.",
        name="writer",
        description="Writes letters.",
        tools=[
            pay,
            {"type": "web_search", "authorization": "Bearer secret-4"},
            *servers,
        ],
        default_options={"temperature": 0.5},
        middleware=[audit],
        context_providers=[Memo("memo")],
    )
    clerk = Clerk(id="clerk")
    desk = WorkflowExecutor(WorkflowBuilder(start_executor=stamp, name="desk").build(), id="desk")
    builder = WorkflowBuilder(start_executor=clerk, name="letters", max_iterations=50)
    builder.add_edge(clerk, file, condition=is_order)
    builder.add_edge(file, desk)
    builder.add_edge(desk, writer)
    builder.add_switch_case_edge_group(
        writer, [Case(condition=is_done, target=finish), Default(target=again)]
    )
    return builder.build()


def serve() -> Workflow:
    """Build the workflow, with a server that is started for its agent."""
    environment = {"KEY": "secret-5"}
    return build(MCPStdioTool("files", command="serve-files", args=["/data"], env=environment))


if __name__ == "__main__":
    from sealpoint_agent_framework._world import world_of

    sys.stdout.buffer.write(world_of(serve()).encode())
