"""Asks a Bedrock runtime in several ways with boto3, and prints what each call got.

    bedrock.py URL        http://HOST:PORT

One line of JSON a call, as ask.py does.
"""

import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, EventStreamError

MODEL = "us.meta.llama3-1-70b-instruct-v1:0"
IMPORTED = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456"
MESSAGES = [{"role": "user", "content": [{"text": "hello there"}]}]
SYSTEM = [{"text": "be brief"}]
SCHEMA = {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}
TOOLS = {
    "tools": [{"toolSpec": {"name": "double", "inputSchema": {"json": SCHEMA}}}],
    "toolChoice": {"tool": {"name": "double"}},
}


def show(what, **found):
    print(json.dumps({"what": what, **found}, sort_keys=True), flush=True)


def asked(model=MODEL, **more):
    return {"modelId": model, "messages": MESSAGES, "system": SYSTEM, "inferenceConfig": {"maxTokens": 16}, **more}


def whole(client, what, **more):
    answer = client.converse(**asked(**more))
    for part in answer["output"]["message"]["content"]:
        # Made anew for each call.
        part.get("toolUse", {}).pop("toolUseId", None)
    show(what, message=answer["output"]["message"], stop=answer["stopReason"], usage=answer["usage"])


def told(events):
    """What a stream said; its times differ from run to run."""
    found = {"kinds": [], "text": "", "input": ""}
    for event in events:
        for kind, said in event.items():
            found["kinds"].append(kind)
            delta = said.get("delta", {})
            found["text"] += delta.get("text", "")
            found["input"] += delta.get("toolUse", {}).get("input", "")
            if "stopReason" in said:
                found["stop"] = said["stopReason"]
            if "usage" in said:
                found["usage"] = said["usage"]
    return found


def streamed(client, what, **more):
    show(what, **told(client.converse_stream(**asked(**more))["stream"]))


def fault(client, what, wanted):
    """A call that the stand-in spoils."""
    more = {"additionalModelRequestFields": {"sim": {"fault": wanted}}}
    try:
        show(what, **told(client.converse_stream(**asked(**more))["stream"]))
    except EventStreamError as error:
        show(what, stream=error.response["Error"])
    except ClientError as error:
        meta = error.response["ResponseMetadata"]
        show(what, status=meta["HTTPStatusCode"], error=error.response["Error"], retries=meta["RetryAttempts"])
    except Exception as error:  # a frame that cannot be read
        show(what, kind=type(error).__name__)


def main():
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=sys.argv[1],
        region_name="us-east-1",
        aws_access_key_id="AKIDCLIENT",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )
    whole(client, "converse")
    whole(client, "converse tools", toolConfig=TOOLS)
    streamed(client, "stream")
    streamed(client, "stream of an imported model", model=IMPORTED)
    streamed(client, "stream tools", toolConfig=TOOLS)
    fault(client, "throttled", "status=429")
    fault(client, "unavailable", "status=503")
    fault(client, "exception", "error-event=3")
    fault(client, "damaged", "malformed-chunk=2")
    fault(client, "without metadata", "no-done")


main()
