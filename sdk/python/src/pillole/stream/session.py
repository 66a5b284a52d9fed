"""One connection: reads frames in order, delivers items, detects gaps."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import PilloleError
from ..models import Pill, Refused, Snapshot
from .frames import (
    Drain,
    ErrorFrame,
    Frame,
    GapFrame,
    Heartbeat,
    Live,
    PillFrame,
    Pills,
    Quiet,
    SnapshotFrame,
    Status,
    Subscribed,
    Welcome,
    frame_error,
    refused_symbols,
)
from .gaps import Break, fill_breaks, fill_frame, report_unknown
from .position import offset_of, parse_cursor, parse_position
from .runtime import StreamRuntime
from .subscription import FRAME_BYTES_MAX

Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass
class _Handover:
    """The answers to one subscribe frame: ``subscribed``, snapshot or replay, then ``live``."""

    subscribed: Subscribed | None = None
    is_live: bool = False
    breaks: list[Break] = field(default_factory=list)
    """Gaps that the snapshot shows after a failed resume."""


class Session:
    """The state of one connection."""

    def __init__(self, runtime: StreamRuntime, send: Send) -> None:
        self._runtime = runtime
        self._send = send
        resume = runtime.received.text or runtime.resume
        self._resume = resume
        self._start = parse_position(resume) if isinstance(resume, str) else None
        self._handovers: dict[str, _Handover] = {}
        self._reported: set[str] = set()
        """Symbols whose gap the server has reported in this session, perhaps ``*``."""
        self._epoch = ""
        self._is_ahead = False
        self._is_settled = False
        self._generator = "alive"
        self.fatal: PilloleError | None = None
        self.end: PilloleError | None = None
        """Ends the stream, not only the connection."""
        self.server_delay_s: float | None = None
        self.delay_is_exact = False
        """The server's delay includes the jitter."""
        self.live_since: float | None = None

    async def read(self, frame: Frame) -> None:
        """Reads one frame; the next one must wait for the return."""
        runtime = self._runtime
        if isinstance(frame, PillFrame):
            await self._read_pills([frame])
        elif isinstance(frame, Pills):
            await self._read_pills([_sent(pill, frame.sent_at) for pill in frame.pills])
        elif isinstance(frame, Heartbeat):
            self._reach(frame.position)
            self._read_generator(frame)
            runtime.note(frame)
        elif isinstance(frame, Welcome):
            await self._read_welcome(frame)
        elif isinstance(frame, Subscribed):
            self._read_subscribed(frame)
        elif isinstance(frame, SnapshotFrame):
            self._read_snapshot(frame)
        elif isinstance(frame, Live):
            await self._read_live(frame)
        elif isinstance(frame, GapFrame):
            self._reported.update(frame.symbols)
            await fill_frame(runtime, frame)
        elif isinstance(frame, Quiet | Status):
            runtime.note(frame)
        elif isinstance(frame, Drain):
            self._reach(frame.position)
            self.server_delay_s, self.delay_is_exact = frame.reconnect_after_ms / 1_000, True
            runtime.note(frame)
        else:
            self._read_error(frame)

    async def _read_welcome(self, frame: Welcome) -> None:
        self._epoch = frame.epoch
        self._runtime.chains.begin_connection(frame.epoch)
        bytes_max = int(frame.limits.get("frame_in_bytes", FRAME_BYTES_MAX))
        frames = self._runtime.subscription.frames(self._resume, bytes_max)
        self._handovers = {str(one["id"]): _Handover() for one in frames}
        for one in frames:
            await self._send(one)

    def _read_subscribed(self, frame: Subscribed) -> None:
        runtime = self._runtime
        handover = self._handovers.get(frame.id or "")
        if handover is None:
            return
        handover.subscribed = frame
        if frame.reason == "position_ahead" and not self._is_ahead:
            self._is_ahead = True
            runtime.chains.clear()
        if not frame.rejected:
            return
        nothing = all(
            one.subscribed is not None and not one.subscribed.accepted
            for one in self._handovers.values()
        )
        if runtime.throws_refusals or nothing:
            self.end = refused_symbols(frame.rejected)
            return
        for one in frame.rejected:
            if one.symbol not in runtime.refused:
                runtime.refused.add(one.symbol)
                runtime.deliver(Refused(one.symbol, one.code))

    def _read_snapshot(self, frame: SnapshotFrame) -> None:
        runtime = self._runtime
        handover = self._handovers.get(frame.id or "")
        for pill in frame.pills:
            answer = None if handover is None else handover.subscribed
            if handover is not None and answer is not None and answer.recovered is False:
                found = self._break_before(pill)
                if found is not None:
                    handover.breaks.append(found)
            runtime.chains.add_snapshot(pill)
        runtime.deliver(Snapshot(frame.pills, frame.last, frame.position))

    def _break_before(self, pill: Pill) -> Break | None:
        """The gap before a symbol's last pill after a failed resume, unless it was delivered."""
        until = pill.last_cursor or pill.cursor
        at = parse_cursor(until)
        if at is None:
            return None
        resumed = -1 if self._start is None else self._start.offsets.get(at[0], -1)
        last = self._runtime.chains.last_cursor(pill.symbol)
        if at[1] <= max(resumed, offset_of(last)):
            return None
        return Break(pill.symbol, last or (None if resumed < 0 else f"{at[0]}-{resumed}"), until)

    async def _read_live(self, frame: Live) -> None:
        handover = self._handovers.get(frame.id or "")
        if handover is None:
            return
        await self._report_failed_resume(handover)
        handover.is_live = True
        if self._is_settled or not all(one.is_live for one in self._handovers.values()):
            return
        self._is_settled = True
        if self._is_ahead:
            position = parse_position(frame.position)
            if position is not None:
                self._runtime.received.replace(position)
                self._runtime.queue.mark(position, replaces=True)
        else:
            self._reach(frame.position)
        self.live_since = time.monotonic()
        self._runtime.state = "live"

    async def _report_failed_resume(self, handover: _Handover) -> None:
        """Reports the pills that a failed resume may have lost."""
        runtime, answer = self._runtime, handover.subscribed
        if answer is None or answer.recovered is not False or runtime.subscription.mode == "latest":
            return
        reason = answer.reason or "not_recovered"
        # Cursors of another log cannot be compared with cursors of this one.
        same_log = self._start is not None and self._start.epoch == self._epoch
        if runtime.subscription.is_chained and same_log:
            # The log ends before the position: what became of the pills in between is unknown.
            if reason == "position_ahead":
                report_unknown(runtime, answer.accepted, reason)
            rest = [one for one in handover.breaks if one.symbol not in self._reported]
            if rest and "*" not in self._reported:
                await fill_breaks(runtime, rest, reason, self._epoch)
        elif not self._reported:
            report_unknown(runtime, answer.accepted, reason)

    async def _read_pills(self, pills: Sequence[Pill]) -> None:
        """Delivers new pills; a gap before one is filled first."""
        runtime = self._runtime
        chains, subscription = runtime.chains, runtime.subscription
        advances = self._advances()
        for pill in pills:
            known = (
                chains.was_delivered(pill) if subscription.backfill else chains.is_duplicate(pill)
            )
            if known:
                continue
            after = chains.broken_after(pill) if subscription.is_chained else None
            if after is not None and pill.prev is not None:
                missing = Break(pill.symbol, after, pill.prev)
                await fill_breaks(runtime, [missing], "prev_broken", self._epoch)
            chains.add_pill(pill)
            runtime.deliver(pill, advances)

    def _advances(self) -> bool:
        """Pills come in the order of the log, except in mode ``latest``; a subscription in several
        frames holds no position before all of them are live."""
        if self._runtime.subscription.mode == "latest":
            return False
        first = next(iter(self._handovers.values()), None)
        answer = None if first is None else first.subscribed
        replays = answer is not None and answer.recovered is True and self._start is not None
        return self._is_settled or (replays and len(self._handovers) == 1)

    def _read_generator(self, frame: Heartbeat) -> None:
        state = frame.generator.state
        if state not in (self._generator, "alive"):
            since = frame.generator.last_received_at
            self._runtime.note(Quiet(symbol="*", reason=f"generator_{state}", since=since))
        self._generator = state

    def _read_error(self, frame: ErrorFrame) -> None:
        if frame.fatal:
            self._reach(frame.position)
        error = frame_error(frame, self._runtime.received.text)
        if frame.fatal:
            self.fatal = error
            if error.retry_after_s is not None:
                self.server_delay_s, self.delay_is_exact = error.retry_after_s, False
        elif frame.id in self._handovers:
            self.end = error
        self._runtime.note(error)

    def _reach(self, text: str | None) -> None:
        position = parse_position(text)
        if self._is_settled and position is not None:
            self._runtime.received.raise_to(position)
            self._runtime.queue.mark(position)


def _sent(pill: Pill, sent_at: str | None) -> Pill:
    """The pill with the time of its frame."""
    if sent_at is None:
        return pill
    return Pill(
        pill.cursor,
        pill.id,
        pill.timestamp,
        pill.symbol,
        pill.gross_spread_percent,
        pill.market_state,
        pill.confidence,
        pill.received_at,
        pill.prev,
        sent_at,
        pill.late,
        pill.backfill,
        pill.replayed,
        pill.skipped,
    )
