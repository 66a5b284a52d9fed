"""Receipts: prove alone that you have all pills of a range of history, or of an export."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any

from .errors import PilloleError

ALGORITHM = "pill-sha256-sum-1"
_NAMES = (
    *("epoch", "cursor", "id", "symbol", "timestamp"),
    *("gross_spread_percent", "market_state", "confidence"),
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$")
_MODULUS = 1 << 256


def verify_receipt(pills: Any, receipt: Mapping[str, Any]) -> None:
    """Raises PilloleError ``receipt_mismatch`` unless exactly the pills of the receipt are there.

    ``pills``: pills or mappings in any order, a pyarrow table, a pandas or polars data frame.
    ``receipt``: of a page of history (which covers all earlier pages too) or of an export.
    """
    if receipt.get("algorithm") != ALGORITHM:
        message = f"The receipt is made by {receipt.get('algorithm')}: update the client."
        raise PilloleError("receipt_unknown", message)
    own = receipt_of(pills, str(receipt["epoch"]))
    for name in ("count", "first", "last", "digest"):
        if own[name] != receipt[name]:
            message = f"{name} is {own[name]}, and {receipt[name]} in the receipt: pills differ."
            raise PilloleError("receipt_mismatch", message)


def receipt_of(pills: Any, epoch: str) -> dict[str, Any]:
    """The receipt of some pills. ``epoch``: of pills that state none."""
    columns = _columns(pills, epoch)
    total, count = 0, len(columns["cursor"])
    texts = zip(
        columns["epoch"],
        columns["cursor"],
        columns["id"],
        columns["symbol"],
        map(str, columns["timestamp"]),
        map(str, _bits(columns["gross_spread_percent"])),
        columns["market_state"],
        map(str, _bits(columns["confidence"])),
        strict=True,
    )
    from_bytes = int.from_bytes
    for parts in texts:
        total += from_bytes(sha256("\n".join(parts).encode()).digest(), "little")
    places = [
        (one, *map(int, cursor.split("-")))
        for one, cursor in zip(columns["epoch"], columns["cursor"], strict=True)
    ]
    ends = (min(places), max(places)) if places else None
    return {
        "algorithm": ALGORITHM,
        "epoch": epoch,
        "count": count,
        "first": None if ends is None else f"{ends[0][1]}-{ends[0][2]}",
        "last": None if ends is None else f"{ends[1][1]}-{ends[1][2]}",
        "digest": f"{total % _MODULUS:064x}",
    }


def _bits(values: list[float]) -> list[int]:
    """The bits of each double, as an unsigned integer."""
    return memoryview(array("d", values)).cast("B").cast("Q").tolist()


def _columns(pills: Any, epoch: str) -> dict[str, list[Any]]:
    if hasattr(pills, "to_arrow"):  # polars
        pills = pills.to_arrow()
    if hasattr(pills, "column_names") and hasattr(pills, "schema"):
        return _arrow_columns(pills, epoch)
    if hasattr(pills, "columns") and hasattr(pills, "iloc"):
        import pyarrow as pa

        own = [name for name in _NAMES if name in pills.columns]
        return _arrow_columns(pa.Table.from_pandas(pills[own], preserve_index=False), epoch)
    return _row_columns(pills, epoch)


def _arrow_columns(table: Any, epoch: str) -> dict[str, list[Any]]:
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    for name in _NAMES:
        if name not in table.column_names:
            columns[name] = [epoch] * table.num_rows
            continue
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
        columns[name] = column.to_pylist()
    columns["epoch"] = [one or epoch for one in columns["epoch"]]
    columns["timestamp"] = [
        one if isinstance(one, int) else _micros(one) for one in columns["timestamp"]
    ]
    return columns


def _row_columns(rows: Iterable[Any], epoch: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES}
    for row in rows:
        read = (
            row.get if isinstance(row, Mapping) else lambda name, row=row: getattr(row, name, None)
        )
        for name in _NAMES:
            columns[name].append(read(name))
    columns["epoch"] = [one or epoch for one in columns["epoch"]]
    columns["timestamp"] = [_micros(one) for one in columns["timestamp"]]
    # Rows of CSV are texts.
    for name in ("gross_spread_percent", "confidence"):
        columns[name] = [float(one) for one in columns[name]]
    return columns


def _micros(time: Any) -> int:
    """Microseconds since 1970, exactly."""
    if isinstance(time, str):
        match = _ISO.match(time)
        if match is None:
            raise PilloleError("time_malformed", f"{time} is no time in UTC.")
        seconds = datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc)
        return int(seconds.timestamp()) * 1_000_000 + int((match[2] or "0").ljust(6, "0"))
    if isinstance(time, datetime):
        since = time - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return int(time)
