"""Receipts: prove alone that you have all pills of a range of history, or of an export."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from itertools import chain, pairwise
from typing import Any

from .errors import PilloleError

ALGORITHM = "pill-sha256-sum-1"
_NAMES = (
    *("epoch", "cursor", "id", "symbol", "timestamp"),
    *("gross_spread_percent", "market_state", "confidence"),
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$")
_MODULUS = 1 << 256
_BATCH_ROWS = 65_536

_Place = tuple[Any, ...]
"""Epoch, partition, offset."""
_Part = tuple[Iterable[Any], list[_Place]]
"""Texts to hash, and places among which are the lowest and the highest."""


def verify_receipt(pills: Any, receipt: Mapping[str, Any]) -> None:
    """Raises PilloleError ``receipt_mismatch`` unless exactly the pills of the receipt are there.

    ``pills``: pills or mappings in any order, a pyarrow table, an iterator of such tables, a pandas
    or polars data frame.
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
    parts = _parts(pills, epoch)
    total, count = 0, 0
    ends: list[_Place] = []
    from_bytes = int.from_bytes
    for texts, places in parts:
        for text in texts:
            total += from_bytes(sha256(text).digest(), "little")
            count += 1
        ends = [min(ends[:1] + places), max(ends[1:] + places)] if places else ends
    return {
        "algorithm": ALGORITHM,
        "epoch": epoch,
        "count": count,
        "first": f"{ends[0][1]}-{ends[0][2]}" if ends else None,
        "last": f"{ends[1][1]}-{ends[1][2]}" if ends else None,
        "digest": f"{total % _MODULUS:064x}",
    }


def _parts(pills: Any, epoch: str) -> Iterator[_Part]:
    if isinstance(pills, Iterator):
        first = next(pills, None)
        pills = chain(() if first is None else (first,), pills)
        if _arrow_table(first) is not None:
            return chain.from_iterable(_arrow_parts(table, epoch) for table in pills)
    table = _arrow_table(pills)
    return _row_parts(pills, epoch) if table is None else _arrow_parts(table, epoch)


def _row_parts(rows: Iterable[Any], epoch: str) -> Iterator[_Part]:
    columns = _row_columns(rows, epoch)
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
    places = [
        (one, *map(int, cursor.split("-", 1)))
        for one, cursor in zip(columns["epoch"], columns["cursor"], strict=True)
    ]
    yield ("\n".join(text).encode() for text in texts), places


def _bits(values: list[float]) -> list[int]:
    """The bits of each double, as an unsigned integer."""
    return memoryview(array("d", values)).cast("B").cast("Q").tolist()


def _arrow_table(pills: Any) -> Any:
    """A pyarrow table or a data frame as a table; None for pills and mappings."""
    if hasattr(pills, "to_arrow"):  # polars
        pills = pills.to_arrow()
    if hasattr(pills, "column_names") and hasattr(pills, "schema"):
        return pills
    if hasattr(pills, "columns") and hasattr(pills, "iloc"):
        import pyarrow as pa

        own = [name for name in _NAMES if name in pills.columns]
        return pa.Table.from_pandas(pills[own], preserve_index=False)
    return None


def _arrow_parts(table: Any, epoch: str) -> Iterator[_Part]:
    """Texts are joined column by column: five times as fast as row by row (measured)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "epoch" not in table.column_names:
        table = table.append_column("epoch", pa.array([epoch] * table.num_rows, pa.string()))
    for batch in table.select(list(_NAMES)).to_batches(max_chunksize=_BATCH_ROWS):
        if batch.num_rows == 0:
            continue
        texts = {name: _arrow_text(batch.column(name), name) for name in _NAMES}
        current = pa.scalar(epoch, pa.large_string())
        stated = pc.not_equal(pc.fill_null(texts["epoch"], ""), "")
        texts["epoch"] = pc.if_else(stated, texts["epoch"], current)
        line_feed = pa.scalar("\n", pa.large_string())
        joined = pc.binary_join_element_wise(*(texts[name] for name in _NAMES), line_feed)
        cursor = pc.split_pattern(texts["cursor"], "-", max_splits=1)
        numbers = [pc.cast(pc.list_element(cursor, at), pa.int64()) for at in (0, 1)]
        place = pa.table([texts["epoch"], *numbers], names=["epoch", "partition", "offset"])
        order = [(name, "ascending") for name in place.column_names]
        sorted_places = place.sort_by(order)
        ends = [sorted_places.slice(at, 1).to_pylist()[0] for at in (0, len(place) - 1)]
        yield _slices(joined), [tuple(end.values()) for end in ends]


def _arrow_text(column: Any, name: str) -> Any:
    """A column as the texts of `receiptText`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if name in ("gross_spread_percent", "confidence"):
        column = pc.cast(column, pa.float64()).view(pa.uint64())
    elif pa.types.is_timestamp(column.type):
        column = pc.cast(pc.cast(column, pa.timestamp("us", tz=column.type.tz)), pa.int64())
    elif name == "timestamp" and not pa.types.is_integer(column.type):
        column = pa.array([_micros(one) for one in column.to_pylist()], pa.int64())
    return pc.cast(column, pa.large_string())


def _slices(texts: Any) -> Iterator[memoryview]:
    """The bytes of each text of an array of large strings, without copies."""
    _, ends, data = texts.buffers()
    at = memoryview(ends).cast("q")[texts.offset : texts.offset + len(texts) + 1].tolist()
    view = memoryview(data) if data is not None else memoryview(b"")
    return (view[begin:end] for begin, end in pairwise(at))


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
