"""Asks for chat completions in the ways that applications do, and prints what each call got.

    chat.py openai URL KEY MODEL [COLD_URL]      the openai client; http://HOST:PORT
    chat.py litellm URL KEY MODEL [COLD_URL]     LiteLLM's SDK, with its provider for OpenAI's protocol
    chat.py bedrock URL MODEL [COLD_URL]         LiteLLM's SDK, with its provider for Bedrock: Converse, signed

Behind COLD_URL is an imported model that sleeps. One line of JSON a call, as ask.py does. The body of an error, which
differs between protocols, stands apart in `body`.
"""

import json
import os
import sys

TURNS = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "hello there"},
    {"role": "assistant", "content": "hello"},
    {"role": "user", "content": "how are you"},
]
# As many tokens as fill blocks of 16.
LONG = [{"role": "system", "content": "word " * 64}, {"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "double", "parameters": SCHEMA}}]
MUST_CALL = {"type": "function", "function": {"name": "double"}}
# More than the stand-in's quota of tokens a minute: it reserves them.
BEYOND_THE_QUOTA = 500_000


def show(what, **found):
    print(json.dumps({"what": what, **found}, sort_keys=True), flush=True)


def counted(usage):
    if usage is None:
        return None
    details = usage.get("prompt_tokens_details") or {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {**{name: usage[name] for name in names}, "cached": details.get("cached_tokens") or 0}


def called(calls):
    return [[call["function"]["name"], call["function"]["arguments"]] for call in calls or []]


def of_whole(answer):
    answer = answer.model_dump()
    choice = answer["choices"][0]
    message = choice["message"]
    return {
        "text": message["content"] or "",
        "role": message["role"],
        "tools": called(message.get("tool_calls")),
        "finish": choice["finish_reason"],
        "usage": counted(answer.get("usage")),
    }


def of_stream(chunks):
    """What the chunks add up to, as an application adds them."""
    found = {"text": "", "role": None, "tools": [], "finish": None, "usage": None}
    try:
        for chunk in chunks:
            chunk = chunk.model_dump()
            for choice in chunk["choices"]:
                delta = choice["delta"]
                found["text"] += delta.get("content") or ""
                found["role"] = found["role"] or delta.get("role")
                for call in delta.get("tool_calls") or []:
                    said = call["function"]
                    if call["index"] == len(found["tools"]):
                        found["tools"].append([said["name"], ""])
                    found["tools"][call["index"]][1] += said.get("arguments") or ""
                found["finish"] = choice["finish_reason"] or found["finish"]
            found["usage"] = counted(chunk.get("usage")) or found["usage"]
    except Exception as error:
        error.text_before = found["text"]
        raise
    return found


def tried(what, call):
    """Shows what a call gives, or how it fails."""
    try:
        show(what, got=call())
    except Exception as error:
        body = getattr(error, "body", None)
        show(
            what,
            kind=type(error).__name__,
            status=getattr(error, "status_code", None),
            text_before=getattr(error, "text_before", None),
            body=body if isinstance(body, dict) else str(error),
        )


def both(what, ask, **more):
    """Whole and as a stream, which must say the same."""
    asked = {"messages": TURNS, "max_tokens": 16, **more}
    tried(what, lambda: of_whole(ask(**asked)))
    usage = {"stream_options": {"include_usage": True}}
    tried(f"{what} stream", lambda: of_stream(ask(**asked, stream=True, **usage)))


def tool_turns(ask):
    both("tool", ask, tools=TOOLS, tool_choice=MUST_CALL)
    call = ask(messages=TURNS, max_tokens=16, tools=TOOLS, tool_choice=MUST_CALL).choices[0].message
    [use] = call.tool_calls
    result = str(2 * json.loads(use.function.arguments)["x"])
    turns = [*TURNS, call.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": use.id, "content": result}]
    both("tool result", ask, messages=turns, tools=TOOLS)


def everything(ask, cold):
    both("chat", ask)
    both("sampling", ask, temperature=0.5, top_p=0.9)
    both("without a limit", ask, max_tokens=None)
    both("stop", ask, max_tokens=64, stop=[" the", "ab"])
    parts = [{"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "there"}]}]
    both("parts", ask, messages=parts)
    tool_turns(ask)
    # The first writes to the cache, the second reads from it.
    both("cached", ask, messages=LONG)
    tried("silent stream", lambda: of_stream(ask(messages=TURNS, max_tokens=4, stream=True)))
    both("throttled", ask, max_tokens=BEYOND_THE_QUOTA)
    if cold:
        both("not ready", cold)
    for status in (400, 403, 404, 500, 503):
        both(f"status {status}", ask, extra_headers={"x-sim-fault": f"status={status}"})
    both("exception", ask, extra_headers={"x-sim-fault": "error-event=3"})


def with_openai(url, key, model):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    return lambda **asked: client.chat.completions.create(
        model=model, **{name: value for name, value in asked.items() if value is not None}
    )


def litellm_of(**fixed):
    # Nothing is fetched, nothing told, nothing tried again.
    os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False", DO_NOT_TRACK="1")
    import litellm

    litellm.suppress_debug_info = True
    return lambda **asked: litellm.completion(num_retries=0, max_retries=0, **fixed, **asked)


def with_litellm(url, key, model):
    return litellm_of(model=f"openai/{model}", api_base=f"{url}/v1", api_key=key)


def with_bedrock(url, model):
    return litellm_of(model=f"bedrock/converse/{model}", aws_bedrock_runtime_endpoint=url, aws_region_name="us-east-1")


WAYS = {"openai": (with_openai, 3), "litellm": (with_litellm, 3), "bedrock": (with_bedrock, 2)}


def main():
    way, *rest = sys.argv[1:]
    client, needs = WAYS[way]
    fixed, cold = rest[:needs], rest[needs:]
    everything(client(*fixed), client(cold[0], *fixed[1:]) if cold else None)


main()
