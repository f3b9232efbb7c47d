"""Asks an OpenAI-compatible server in several ways, with several clients, and prints what each got.

    ask.py HOST:PORT WAY…      openai, openai-async, httpx, httpx-http2, aiohttp, errors

One line of JSON a call: whatever differs from run to run by nature (ids, times) is left out, so that
two servers that answer alike give equal lines.
"""

import asyncio
import json
import sys

import aiohttp
import httpx
import openai

MESSAGES = [{"role": "user", "content": "hello there"}]
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}]


def body(stream, **more):
    options = {"stream_options": {"include_usage": True}} if stream else {}
    return {"model": "m", "messages": MESSAGES, "max_tokens": 16, "stream": stream, **options, **more}


def show(what, **found):
    print(json.dumps({"what": what, **found}, sort_keys=True), flush=True)


def joined(chunks):
    text, tools, finish, usage = "", {}, None, None
    for chunk in chunks:
        for choice in chunk.get("choices", []):
            text += choice.get("delta", {}).get("content") or ""
            for call in choice.get("delta", {}).get("tool_calls") or []:
                said = call["function"]
                name, arguments = tools.get(call["index"], ("", ""))
                tools[call["index"]] = (name + (said.get("name") or ""), arguments + (said.get("arguments") or ""))
            finish = choice.get("finish_reason") or finish
        usage = chunk.get("usage") or usage
    return {"text": text, "tools": tools, "finish": finish, "usage": usage}


def events(lines):
    for line in lines:
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[len("data: "):])


def with_openai(base):
    client = openai.OpenAI(base_url=f"http://{base}/v1", api_key="none", max_retries=0)
    whole = client.chat.completions.create(**body(False))
    show("openai", text=whole.choices[0].message.content, usage=whole.usage.model_dump())
    stream = client.chat.completions.create(**body(True))
    show("openai stream", **joined(c.model_dump() for c in stream))
    # The stand-in's own field makes it call tools.
    tools = client.chat.completions.create(**body(True, tools=TOOLS), extra_body={"sim": {"tool_calls": 2}})
    found = joined(c.model_dump() for c in tools)
    assert len(found["tools"]) == 2, found
    show("openai tools", **found)
    show("openai models", models=[m.id for m in client.models.list()])


async def with_openai_async(base):
    client = openai.AsyncOpenAI(base_url=f"http://{base}/v1", api_key="none", max_retries=0)

    async def one():
        return joined([c.model_dump() async for c in await client.chat.completions.create(**body(True))])

    for found in await asyncio.gather(*(one() for _ in range(4))):
        show("openai async", **found)


def with_httpx(base, http2):
    with httpx.Client(http1=not http2, http2=http2) as client:
        url = f"http://{base}/v1/chat/completions"
        show("httpx", choice=client.post(url, json=body(False)).json()["choices"][0])
        with client.stream("POST", url, json=body(True)) as answer:
            show("httpx stream", status=answer.status_code, **joined(events(answer.iter_lines())))


async def with_aiohttp(base):
    async with aiohttp.ClientSession() as session:
        async with session.post(f"http://{base}/v1/chat/completions", json=body(False)) as answer:
            show("aiohttp", status=answer.status, choice=(await answer.json())["choices"][0])
        async with session.post(f"http://{base}/v1/chat/completions", json=body(True)) as answer:
            lines = [line.decode().rstrip("\n") async for line in answer.content]
            show("aiohttp stream", status=answer.status, **joined(events(lines)))


def with_errors(base):
    client = openai.OpenAI(base_url=f"http://{base}/v1", api_key="none", max_retries=0)
    for what, call in {
        "no such path": lambda: client.post("/nowhere", body={}, cast_to=object),
        "no messages": lambda: client.post("/chat/completions", body={"model": "m"}, cast_to=object),
    }.items():
        try:
            call()
            show(what, status=200)
        except openai.APIStatusError as error:
            show(what, status=error.status_code, body=error.body)


def main():
    base, ways = sys.argv[1], sys.argv[2:]
    known = {
        "openai": lambda: with_openai(base),
        "openai-async": lambda: asyncio.run(with_openai_async(base)),
        "httpx": lambda: with_httpx(base, False),
        "httpx-http2": lambda: with_httpx(base, True),
        "aiohttp": lambda: asyncio.run(with_aiohttp(base)),
        "errors": lambda: with_errors(base),
    }
    for way in ways:
        known[way]()


main()
