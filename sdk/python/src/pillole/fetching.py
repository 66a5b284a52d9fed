"""GET requests with their repeats, by httpx: for plain code and for asyncio."""

from __future__ import annotations

import asyncio
import time

import httpx

from .auth import Credentials
from .errors import PilloleError
from .rest import ACCEPT, TIMEOUT_S, Answer, BodyReader, Outcome, Send, Steps, Wait


def run_steps(http: httpx.Client, steps: Steps, credentials: Credentials) -> bytes:
    """Takes the steps of a request; returns the body. Raises PilloleError."""
    answer: Outcome | None = None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            elif isinstance(step, Send):
                try:
                    answer = _fetch(http, step.url, credentials)
                except (httpx.HTTPError, PilloleError) as error:
                    answer = error
    except StopIteration as end:
        return bytes(end.value)


def _fetch(http: httpx.Client, url: str, credentials: Credentials) -> Answer:
    headers = {**ACCEPT, **credentials.headers("GET", url)}
    body = BodyReader()
    with http.stream("GET", url, headers=headers) as response:
        for part in response.iter_bytes():
            body.add(part)
        return body.answer_of(response)


async def run_steps_async(http: httpx.AsyncClient, steps: Steps, credentials: Credentials) -> bytes:
    """The same for asyncio."""
    answer: Outcome | None = None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Send):
                try:
                    answer = await _fetch_async(http, step.url, credentials)
                except (httpx.HTTPError, PilloleError) as error:
                    answer = error
    except StopIteration as end:
        return bytes(end.value)


async def _fetch_async(http: httpx.AsyncClient, url: str, credentials: Credentials) -> Answer:
    headers = {**ACCEPT, **await credentials.headers_async("GET", url)}

    async def read() -> Answer:
        body = BodyReader()
        async with http.stream("GET", url, headers=headers) as response:
            async for part in response.aiter_bytes():
                body.add(part)
            return body.answer_of(response)

    try:
        return await asyncio.wait_for(read(), TIMEOUT_S)
    except (TimeoutError, asyncio.TimeoutError) as error:
        raise httpx.ReadTimeout(f"No answer within {TIMEOUT_S:g} s.") from error
