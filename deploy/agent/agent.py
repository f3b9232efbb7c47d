"""A LangGraph agent over HTTP: it calls a model, and the tools of an MCP server.

    OPENAI_BASE_URL   the model's API, such as http://127.0.0.1:9000/v1 (a gateway, or a tap before one)
    OPENAI_API_KEY    its key; a server that wants none still needs some word here
    MODEL             the model's name; default `m`
    TOOLS_URL         the MCP server (streamable HTTP); default http://127.0.0.1:7070/mcp
    TOOLS_KEY         its bearer key; none where it is unset
    LISTEN            where to listen; default 127.0.0.1:8080

POST /run {"input": "..."} answers {"answer": "...", "tool_calls": [{"name", "ok"}], "model_calls": n}.
GET /health answers 200 once the tools are listed. `traceparent` and every `x-*` field of a request go on
to the model and to the tools, so that what belongs together can be found again.
"""

import contextlib
import os

# Nothing of what is said goes to anybody else.
os.environ.setdefault("LANGSMITH_TRACING", "false")

import uvicorn
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

INPUT_MAX = 64 * 1024
# Two steps of the graph a model call: a model that never stops calling tools ends here.
STEPS_MAX = 40


def tool_server(headers):
    key = os.environ.get("TOOLS_KEY")
    bearer = {"authorization": f"Bearer {key}"} if key else {}
    url = os.environ.get("TOOLS_URL", "http://127.0.0.1:7070/mcp")
    return MultiServerMCPClient({"tools": {"transport": "streamable_http", "url": url, "headers": {**headers, **bearer}}})


def handed_on(request):
    return {name: value for name, value in request.headers.items() if name == "traceparent" or name.startswith("x-")}


async def answer(text, headers):
    """One task, with one MCP session for all its tool calls."""
    model = ChatOpenAI(model=os.environ.get("MODEL", "m"), streaming=True, stream_usage=True, max_retries=0, default_headers=headers)
    async with tool_server(headers).session("tools") as session:
        agent = create_agent(model, await load_mcp_tools(session))
        task = {"messages": [{"role": "user", "content": text}]}
        return (await agent.ainvoke(task, {"recursion_limit": STEPS_MAX}))["messages"]


async def run(request):
    try:
        text = (await request.json())["input"]
    except (ValueError, KeyError, TypeError):
        text = None
    if not isinstance(text, str) or not 0 < len(text) <= INPUT_MAX:
        return JSONResponse({"error": f'the body must be {{"input": TEXT}}, at most {INPUT_MAX} characters'}, 400)
    try:
        said = await answer(text, handed_on(request))
    except Exception as error:  # whatever fails behind it is one failed task to the caller
        return JSONResponse({"error": type(error).__name__}, 502)
    tools = [{"name": m.name, "ok": m.status == "success"} for m in said if m.type == "tool"]
    calls = sum(m.type == "ai" for m in said)
    return JSONResponse({"answer": said[-1].text, "tool_calls": tools, "model_calls": calls})


async def health(_):
    return JSONResponse({"tools": [tool.name for tool in await tool_server({}).get_tools()]})


app = Starlette(routes=[Route("/run", run, methods=["POST"]), Route("/health", health)])

if __name__ == "__main__":
    host, port = os.environ.get("LISTEN", "127.0.0.1:8080").rsplit(":", 1)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.run(app, host=host, port=int(port), log_level="warning")
