"""Invokes an agent of AgentCore Runtime, and prints what each call got.

    agentcore.py URL jwt TOKEN     plain HTTPS with a bearer token, as where an agent's authorizer takes JWTs
    agentcore.py URL sigv4         boto3, with keys of the environment

One line of JSON a call, as ask.py does.
"""

import json
import sys

import boto3
import httpx
from botocore.config import Config
from botocore.exceptions import ClientError

ARN = "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/my_agent-AbCdEf1234"
SESSION = "session-of-a-conformance-client-0001"
# In the order of asking: the first call of a session starts it.
ACCEPTED = ["text/event-stream", "application/json"]


def show(what, **found):
    print(json.dumps({"what": what, **found}, sort_keys=True), flush=True)


def with_jwt(url, token):
    # The label is encoded, as AWS' SDKs encode it.
    path = "/runtimes/" + ARN.replace(":", "%3A").replace("/", "%2F") + "/invocations?qualifier=DEFAULT"
    with httpx.Client(base_url=url, timeout=30) as client:
        for accept in ACCEPTED:
            heads = {"Accept": accept, "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": SESSION}
            for name, authorization in {"jwt": f"Bearer {token}", "another": "Bearer nobody", "none": None}.items():
                asked = {**heads, "Authorization": authorization} if authorization else heads
                answer = client.post(path, json={"prompt": "hello"}, headers=asked)
                show(
                    f"{name} {accept}",
                    status=answer.status_code,
                    kind=answer.headers["content-type"],
                    session=answer.headers.get("x-amzn-bedrock-agentcore-runtime-session-id"),
                    error=answer.headers.get("x-amzn-errortype"),
                    body=answer.text,
                )


def with_keys(url):
    client = boto3.client(
        "bedrock-agentcore", endpoint_url=url, region_name="us-east-1", config=Config(retries={"total_max_attempts": 1})
    )
    asked = {"agentRuntimeArn": ARN, "qualifier": "DEFAULT", "payload": json.dumps({"prompt": "hello"})}
    for accept in ACCEPTED:
        answer = client.invoke_agent_runtime(**asked, accept=accept, runtimeSessionId=SESSION)
        body = answer["response"].read().decode()
        show(accept, kind=answer["contentType"], session=answer["runtimeSessionId"], status=answer["statusCode"], body=body)
    try:
        client.invoke_agent_runtime(**asked, runtimeSessionId=SESSION.replace("client", "second"))
        show("one session too many", status=200)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        show("one session too many", kind=type(error).__name__, error=error.response["Error"], status=status)


url, way, *token = sys.argv[1:]
{"jwt": with_jwt, "sigv4": with_keys}[way](url, *token)
