"""Pills a second of the stream's path without a network: from the bytes of frames to items, and the
memory that it takes. Prints a line of JSON after each million pills.
``python benchmarks/decode.py [millions of pills]``"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from pillole.stream.frames import Pills, Subscribed, Welcome, decode_frame
from pillole.stream.item_queue import ItemQueue
from pillole.stream.runtime import StreamRuntime
from pillole.stream.session import Session
from pillole.stream.subscription import subscription_of

SYMBOLS = 50
PILLS_A_FRAME = 8
FRAMES_A_ROUND = 12_500


def frames_of(start: int) -> list[bytes]:
    """100,000 pills in frames, with chains that hold from one round to the next."""
    frames = []
    for frame in range(FRAMES_A_ROUND):
        first = start + frame * PILLS_A_FRAME
        pills = [
            {
                "cursor": f"0-{number}",
                "prev": f"0-{number - SYMBOLS}" if number >= SYMBOLS else None,
                "id": f"bench-{number}",
                "timestamp": "2026-11-20T01:02:03.004000Z",
                "symbol": f"BENCH.{number % SYMBOLS}",
                "gross_spread_percent": 0.1261,
                "market_state": "open",
                "confidence": 88,
                "received_at": "2026-11-20T01:02:03.011000Z",
            }
            for number in range(first, first + PILLS_A_FRAME)
        ]
        sent_at = "2026-11-20T01:02:03.019000Z"
        frames.append(json.dumps({"type": "pills", "sent_at": sent_at, "pills": pills}).encode())
    return frames


async def measure(millions: int) -> None:
    """Prints the figures."""
    queue = ItemQueue(None, conflate=False, items_max=10_000, age_max_s=10)
    subscription = subscription_of("*", "all", None, True, False)
    runtime = StreamRuntime(subscription, None, queue, None, None, None, True)
    session = Session(runtime, lambda _: asyncio.sleep(0))
    await session.read(Welcome("s", "pro", "k", 5_000))
    await session.read(Subscribed(["*"], [], "k:0-0", "s1"))
    decode_s = whole_s = cpu_s = 0.0
    pills = 0
    for round_ in range(millions * 10):
        frames = frames_of(pills)
        start = time.perf_counter()
        for data in frames:
            assert isinstance(decode_frame(data), Pills)
        decoded = time.perf_counter()
        cpu = time.process_time()
        for data in frames:
            frame = decode_frame(data)
            assert frame is not None
            await session.read(frame)
            while queue.take() is not None:
                pills += 1
        decode_s += decoded - start
        whole_s += time.perf_counter() - decoded
        cpu_s += time.process_time() - cpu
        if (round_ + 1) % 10 == 0:
            mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            line = {
                "pills": pills,
                "decodedPerS": pills / decode_s,
                "perS": pills / whole_s,
                "perCpuS": pills / cpu_s,
                "maxRssMib": mib,
            }
            print(json.dumps(line), flush=True)


asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
