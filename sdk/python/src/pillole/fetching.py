"""GET requests with their repeats, by httpx: for plain code and for asyncio."""

from __future__ import annotations

import asyncio
import time

import httpx

from .rest import TIMEOUT_S, Answer, BodyReader, Send, Steps, Wait


def run_steps(http: httpx.Client, steps: Steps, headers: dict[str, str]) -> bytes:
    """Takes the steps of a request; returns the body. Raises PilloleError."""
    answer: Answer | httpx.HTTPError | None = None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            elif isinstance(step, Send):
                try:
                    answer = _fetch(http, step.url, headers)
                except httpx.HTTPError as error:
                    answer = error
    except StopIteration as end:
        return bytes(end.value)


def _fetch(http: httpx.Client, url: str, headers: dict[str, str]) -> Answer:
    body = BodyReader()
    with http.stream("GET", url, headers=headers) as response:
        for part in response.iter_bytes():
            body.add(part)
        return body.answer_of(response)


async def run_steps_async(http: httpx.AsyncClient, steps: Steps, headers: dict[str, str]) -> bytes:
    """The same for asyncio."""
    answer: Answer | httpx.HTTPError | None = None
    try:
        while True:
            step = steps.send(answer)
            answer = None
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Send):
                try:
                    answer = await _fetch_async(http, step.url, headers)
                except httpx.HTTPError as error:
                    answer = error
    except StopIteration as end:
        return bytes(end.value)


async def _fetch_async(http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> Answer:
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
