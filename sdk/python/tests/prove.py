"""Calls a platform and reads one pill of its stream, without a key. The input is one object of
JSON: the addresses, a symbol, and a token or what to sign with; the output is one line of JSON."""

from __future__ import annotations

import json
import sys

import httpx

from pillole import Client, OutgoingRequest, Pill, bearer_tokens, sign_requests

given = json.load(sys.stdin)
api_url, symbol, token = given["api_url"], given["symbol"], given.get("token")
auth = bearer_tokens(lambda: str(token)) if token else sign_requests(**given["signing"])

with Client(auth=auth, api_url=api_url, stream_url=given["stream_url"]) as client:
    latest = client.latest([symbol])
    shown = {"tier": client.account()["tier"], "latest": [*latest.data, *latest.errors]}
    if not token:
        message = OutgoingRequest("POST", f"{api_url}/api/support", given["message"].encode())
        headers = {"content-type": "application/json", **auth(message)}
        answer = httpx.post(message.url, content=message.body, headers=headers)
        shown["support"] = answer.status_code
    for item in client.stream(symbol):
        if isinstance(item, Pill):
            print(json.dumps({**shown, "pill": item.symbol}))
            break
