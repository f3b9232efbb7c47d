"""Asks a Bedrock runtime in every way with boto3, and prints what each call got.

    bedrock.py URL COLD_URL        http://HOST:PORT each; behind the second is an imported model that sleeps

One line of JSON a call, as ask.py does. Keys come from the environment, as an application has them.
"""

import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
IMPORTED = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456"
SYSTEM = [{"text": "be brief"}]
TURNS = [
    {"role": "user", "content": [{"text": "hello there"}]},
    {"role": "assistant", "content": [{"text": "hello"}]},
    {"role": "user", "content": [{"text": "how are you"}]},
]
SCHEMA = {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}
TOOLS = [{"toolSpec": {"name": "double", "inputSchema": {"json": SCHEMA}}}]
MUST_CALL = {"tools": TOOLS, "toolChoice": {"tool": {"name": "double"}}}
GUARDRAIL = {"guardrailIdentifier": "g1", "guardrailVersion": "1", "trace": "enabled"}
# What an answer is allowed to differ by from run to run.
OF_THE_RUN = ("latencyMs", "guardrailProcessingLatency", "toolUseId", "id", "invocationLatency", "firstByteLatency")
# More than the stand-in's quota of tokens a minute: it reserves them.
BEYOND_THE_QUOTA = 500_000


def show(what, **found):
    print(json.dumps({"what": what, **found}, sort_keys=True), flush=True)


def settled(value):
    """The same without what differs from run to run."""
    if isinstance(value, dict):
        return {name: settled(inner) for name, inner in value.items() if name not in OF_THE_RUN}
    if isinstance(value, list):
        return [settled(inner) for inner in value]
    return value


def tried(what, call):
    """Shows what a call gives, or how it fails: for the client it must be the same error."""
    try:
        show(what, got=settled(call()))
    except EventStreamError as error:
        show(what, stream=error.response["Error"], operation=error.operation_name)
    except ClientError as error:
        meta = error.response["ResponseMetadata"]
        show(
            what,
            error=error.response["Error"],
            kind=type(error).__name__,
            status=meta["HTTPStatusCode"],
            retries=meta["RetryAttempts"],
        )
    except Exception as error:  # a frame that cannot be read
        show(what, kind=type(error).__name__)


def asked(**more):
    return {"modelId": MODEL, "messages": TURNS, "system": SYSTEM, "inferenceConfig": {"maxTokens": 16}, **more}


def spoiled(fault, **more):
    """A request that the stand-in spoils."""
    return asked(additionalModelRequestFields={"sim": {"fault": fault}}, **more)


def converse(client, what, **more):
    def call():
        answer = client.converse(**more)
        answer.pop("ResponseMetadata")
        return answer

    tried(what, call)


def stream(client, what, **more):
    """Every event, in the order in which it came, also those before an error."""

    def call():
        for event in client.converse_stream(**more)["stream"]:
            show(what, event=settled(event))
        return "end"

    tried(what, call)


def tool_turns(client, what, ask):
    """The model calls the tool, is told its result, and answers."""
    called = client.converse(**asked(toolConfig=MUST_CALL))["output"]["message"]
    use = called["content"][0]["toolUse"]
    result = {"toolUseId": use["toolUseId"], "content": [{"text": str(2 * use["input"]["x"])}]}
    turns = [*TURNS, called, {"role": "user", "content": [{"toolResult": result}]}]
    ask(client, what, **asked(messages=turns, toolConfig={"tools": TOOLS}))


def claude(tokens=16, **more):
    turns = [{"role": "user", "content": [{"type": "text", "text": "hello there"}]}]
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": tokens, "system": "be brief", "messages": turns}
    return json.dumps({**body, **more})


def llama(tokens=16, **more):
    return json.dumps({"prompt": "hello there", "max_gen_len": tokens, **more})


def claude_with_tool(choice, turns=()):
    asked_for = [{"role": "user", "content": "double one"}, *turns]
    tools = [{"name": "double", "input_schema": SCHEMA}]
    return claude(tools=tools, tool_choice=choice, messages=asked_for)


def invoke(client, what, body, model=MODEL, **more):
    def call():
        answer = client.invoke_model(modelId=model, body=body, **more)
        heads = answer["ResponseMetadata"]["HTTPHeaders"]
        counted = {name: value for name, value in heads.items() if name.endswith("-token-count")}
        return {"body": json.load(answer["body"]), "counted": counted, "content_type": answer["contentType"]}

    tried(what, call)


def invoke_stream(client, what, body, model=MODEL, **more):
    def call():
        answer = client.invoke_model_with_response_stream(modelId=model, body=body, **more)
        for event in answer["body"]:
            show(what, event=settled(json.loads(event["chunk"]["bytes"])))
        return answer["contentType"]

    tried(what, call)


def invoke_tool_turns(client):
    named = {"type": "tool", "name": "double"}
    invoke_stream(client, "invoke stream tool", claude_with_tool(named))
    answer = client.invoke_model(modelId=MODEL, body=claude_with_tool(named))
    called = json.load(answer["body"])["content"]
    result = {"type": "tool_result", "tool_use_id": called[0]["id"], "content": "2"}
    turns = [{"role": "assistant", "content": called}, {"role": "user", "content": [result]}]
    invoke(client, "invoke tool result", claude_with_tool({"type": "auto"}, turns))


def guarded(client):
    words = [{"role": "user", "content": [{"text": "a forbidden word"}]}]
    converse(client, "guardrail", **asked(messages=words, guardrailConfig=GUARDRAIL))
    streamed = {**GUARDRAIL, "streamProcessingMode": "sync"}
    stream(client, "guardrail stream", **asked(messages=words, guardrailConfig=streamed))
    converse(client, "guardrail that lets pass", **asked(guardrailConfig=GUARDRAIL))
    named = {"guardrailIdentifier": "g1", "guardrailVersion": "1", "trace": "ENABLED"}
    body = claude(messages=[{"role": "user", "content": "a forbidden word"}])
    invoke(client, "invoke guardrail", body, **named)
    invoke_stream(client, "invoke stream guardrail", body, **named)


def refused(client, what, tokens):
    """The same refusal by all four operations."""
    more = asked(inferenceConfig={"maxTokens": tokens})
    converse(client, f"{what} converse", **more)
    stream(client, f"{what} stream", **more)
    invoke(client, f"{what} invoke", claude(tokens))
    invoke_stream(client, f"{what} invoke stream", llama(tokens), model=IMPORTED)


def faults(client):
    stream(client, "exception", **spoiled("error-event=3"))
    invoke_stream(client, "invoke exception", claude(sim={"fault": "error-event=3"}))
    stream(client, "damaged", **spoiled("malformed-chunk=2"))
    stream(client, "without metadata", **spoiled("no-done"))
    converse(client, "unavailable", **spoiled("status=503"))
    converse(client, "model error", **spoiled("status=424"))
    invoke(client, "invalid", "{}")


def client_of(url):
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}),
    )


def main():
    client, cold = client_of(sys.argv[1]), client_of(sys.argv[2])
    converse(client, "converse", **asked())
    converse(client, "converse stop", **asked(inferenceConfig={"maxTokens": 64, "stopSequences": [" the", "ab"]}))
    converse(client, "converse tool", **asked(toolConfig=MUST_CALL))
    tool_turns(client, "converse tool result", converse)
    stream(client, "stream", **asked())
    stream(client, "stream of an imported model", **asked(modelId=IMPORTED))
    stream(client, "stream tool", **asked(toolConfig=MUST_CALL))
    tool_turns(client, "stream tool result", stream)
    invoke(client, "invoke claude", claude())
    invoke(client, "invoke llama", llama(), model=IMPORTED)
    invoke_stream(client, "invoke stream claude", claude())
    invoke_stream(client, "invoke stream llama", llama(), model=IMPORTED)
    invoke_tool_turns(client)
    guarded(client)
    refused(client, "throttled", BEYOND_THE_QUOTA)
    refused(cold, "not ready", 16)
    faults(client)


main()
