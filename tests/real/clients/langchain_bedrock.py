"""Asks a Bedrock runtime with langchain-aws, by Converse and by InvokeModel, and prints what each call got.

    langchain_bedrock.py URL COLD_URL        http://HOST:PORT each; behind the second is an imported model that sleeps

One line of JSON a call, as ask.py does. Keys come from the environment, as an application has them.
"""

import json
import sys

from botocore.config import Config
from langchain_aws import ChatBedrock, ChatBedrockConverse
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
TURNS = [SystemMessage("be brief"), HumanMessage("hello there"), AIMessage("hello"), HumanMessage("how are you")]
FORBIDDEN = [HumanMessage("a forbidden word")]
# What an answer is allowed to differ by from run to run.
OF_THE_RUN = ("id", "lc_id", "metrics", "ResponseMetadata", "RequestId", "toolUseId", "tool_use_id", "tool_call_id",
              "latencyMs", "guardrailProcessingLatency", "invocationLatency", "firstByteLatency")
# More than the stand-in's quota of tokens a minute: it reserves them.
BEYOND_THE_QUOTA = 500_000
ONCE = Config(retries={"total_max_attempts": 1})


def show(what, **found):
    print(json.dumps({"what": what, **found}, sort_keys=True, default=str), flush=True)


def settled(value):
    """The same without what differs from run to run."""
    if isinstance(value, dict):
        return {name: settled(inner) for name, inner in value.items() if name not in OF_THE_RUN}
    if isinstance(value, (list, tuple)):
        return [settled(inner) for inner in value]
    return value


def tried(what, call):
    """Shows what a call gives, or how it fails: for the client it must be the same error."""
    try:
        show(what, got=settled(call().model_dump()))
    except Exception as error:
        told = getattr(error, "response", {})
        status = told.get("ResponseMetadata", {}).get("HTTPStatusCode")
        show(what, kind=type(error).__name__, message=str(error), error=told.get("Error"), status=status)


def streamed(what, model, turns):
    """Every chunk, in the order in which it came, also those before an error, and what they add up to."""

    def call():
        whole = None
        for chunk in model.stream(turns):
            show(what, chunk=settled(chunk.model_dump()))
            whole = chunk if whole is None else whole + chunk
        return whole

    tried(what, call)


def double(x: int) -> int:
    """Doubles a number."""
    return 2 * x


def tool_turns(name, model):
    """The model calls the tool, is told its result, and answers."""
    forced = model.bind_tools([double], tool_choice="double")
    tried(f"{name} tool", lambda: forced.invoke(TURNS))
    streamed(f"{name} tool stream", forced, TURNS)
    called = forced.invoke(TURNS)
    use = called.tool_calls[0]
    turns = [*TURNS, called, ToolMessage(str(double(**use["args"])), tool_call_id=use["id"])]
    free = model.bind_tools([double])
    tried(f"{name} tool result", lambda: free.invoke(turns))
    streamed(f"{name} tool result stream", free, turns)


class Told(BaseCallbackHandler):
    """ChatBedrock tells of an intervention, with the guardrail's trace, as an error to its callbacks."""

    def on_llm_error(self, error, **more):
        if "reason" in more:
            show("intervention", error=str(error), **settled({k: more[k] for k in ("reason", "trace") if k in more}))


def converse(url, **more):
    return ChatBedrockConverse(model=MODEL, region_name="us-east-1", endpoint_url=url, config=ONCE, **{"max_tokens": 16, **more})


def invoke(url, **more):
    return ChatBedrock(model=MODEL, region_name="us-east-1", endpoint_url=url, config=ONCE, **{"max_tokens": 16, **more})


def both_ways(what, model, turns=TURNS):
    tried(what, lambda: model.invoke(turns))
    streamed(f"{what} stream", model, turns)


def main():
    url, cold = sys.argv[1:]
    guardrail = {"guardrailIdentifier": "g1", "guardrailVersion": "1"}
    fault = {"sim": {"fault": "error-event=3"}}
    both_ways("converse", converse(url))
    tool_turns("converse", converse(url))
    both_ways("converse guardrail", converse(url, guardrail_config={**guardrail, "trace": "enabled"}), FORBIDDEN)
    streamed("converse exception", converse(url, additional_model_request_fields=fault), TURNS)
    both_ways("converse throttled", converse(url, max_tokens=BEYOND_THE_QUOTA))
    both_ways("converse not ready", converse(cold))
    both_ways("invoke", invoke(url))
    tool_turns("invoke", invoke(url))
    guarded = invoke(url, guardrails={**guardrail, "trace": True}, callbacks=[Told()])
    both_ways("invoke guardrail", guarded, FORBIDDEN)
    streamed("invoke exception", invoke(url, model_kwargs=fault), TURNS)
    both_ways("invoke throttled", invoke(url, max_tokens=BEYOND_THE_QUOTA))
    both_ways("invoke not ready", invoke(cold))


main()
