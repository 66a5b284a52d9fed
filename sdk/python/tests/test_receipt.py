"""Receipts of the released fixtures, from rows and from tables of every form."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pillole import PilloleError, verify_receipt
from pillole.exports import read_table, read_tables
from pillole.receipt import receipt_of

FIXTURES = json.loads(
    (Path(__file__).parents[3] / "schemas/receipt-fixtures.json").read_text("utf-8")
)
ROWS: list[dict[str, Any]] = [
    {
        **pill,
        "cursor": f"{pill['partition']}-{pill['offset']}",
        "confidence": float(pill["confidence"]),
    }
    for pill in (one["pill"] for one in FIXTURES["pills"])
]
RECEIPT = FIXTURES["receipt"]
TABLE = pa.Table.from_pylist(ROWS)


def _with(name: str, column: Any) -> pa.Table:
    return TABLE.set_column(TABLE.schema.get_field_index(name), name, column)


CURRENT = TABLE["epoch"].to_pylist()
FORMS = {
    "rows": ROWS,
    "a table": TABLE,
    "a table without those before": pa.concat_tables([TABLE, TABLE]).slice(len(ROWS)),
    "several chunks, one of them empty": pa.concat_tables(
        [TABLE.slice(0, 1), TABLE.slice(0, 0), TABLE.slice(1)]
    ),
    "times": _with("timestamp", TABLE["timestamp"].cast(pa.timestamp("us", tz="UTC"))),
    "nanoseconds": _with(
        "timestamp", TABLE["timestamp"].cast(pa.timestamp("us")).cast(pa.timestamp("ns"))
    ),
    "dictionaries": _with("symbol", TABLE["symbol"].combine_chunks().dictionary_encode()),
    "no epoch for the current log": _with(
        "epoch", pa.array([None if one == "k7f3" else one for one in CURRENT])
    ),
    "an empty epoch for the current log": _with(
        "epoch", pa.array(["" if one == "k7f3" else one for one in CURRENT])
    ),
    "pandas": TABLE.to_pandas(),
    "polars": pl.from_arrow(TABLE),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_pills_has_the_same_receipt(form: str) -> None:
    assert receipt_of(FORMS[form], "k7f3") == RECEIPT
    verify_receipt(FORMS[form], RECEIPT)


def test_tables_one_by_one_have_the_receipt_of_their_whole() -> None:
    tables = [TABLE.slice(0, 1), TABLE.slice(0, 0), TABLE.slice(1)]
    assert receipt_of(iter(tables), "k7f3") == receipt_of(iter(ROWS), "k7f3") == RECEIPT
    assert receipt_of(iter(tables[1:]), "k7f3") != RECEIPT
    assert receipt_of(iter([]), "k7f3")["count"] == 0


def _members(parts: list[bytes], codec: str) -> bytes:
    """Exports are such files: each slice is a member of its own."""
    return b"".join(pa.compress(part, codec=codec, asbytes=True) for part in parts)


def _write(path: Path, format_: str) -> None:
    table = FORMS["times"]
    parts = [table.slice(0, 1), table.slice(1)]
    if format_ == "parquet":
        pq.write_table(table, path, row_group_size=1)
    elif format_ == "arrow":
        with pa.ipc.new_stream(path, table.schema) as stream:
            for part in parts:
                stream.write_table(part)
    elif format_ == "csv.gz":
        texts = [io.BytesIO(), io.BytesIO()]
        for number, part in enumerate(parts):
            pa.csv.write_csv(part, texts[number], pa.csv.WriteOptions(include_header=number == 0))
        path.write_bytes(_members([text.getvalue() for text in texts], "gzip"))
    else:
        lines = [
            json.dumps({**row, "timestamp": row["timestamp"].isoformat()}) + "\n"
            for row in table.to_pylist()
        ]
        path.write_bytes(_members([lines[0].encode(), "".join(lines[1:]).encode()], "zstd"))


@pytest.mark.parametrize("part_bytes", [64, 1 << 20])
@pytest.mark.parametrize("format_", ["parquet", "arrow", "csv.gz", "ndjson.zst"])
def test_a_file_is_read_part_by_part(
    format_: str, part_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A part of CSV holds one line at least.
    monkeypatch.setattr("pillole.exports.PART_BYTES", max(part_bytes, 4_096 * (format_[0] == "c")))
    path = tmp_path / "file"
    _write(path, format_)
    assert receipt_of(read_tables(path, format_), "k7f3") == RECEIPT
    assert receipt_of(read_table(path, format_), "k7f3") == RECEIPT


def test_no_pills() -> None:
    none = {**RECEIPT, "count": 0, "first": None, "last": None, "digest": "0" * 64}
    assert receipt_of(TABLE.slice(0, 0), "k7f3") == receipt_of([], "k7f3") == none


def test_a_pill_too_few_too_many_or_another_is_noticed() -> None:
    other = _with("confidence", pa.array([1.0, *TABLE["confidence"].to_pylist()[1:]]))
    for pills in (TABLE.slice(1), pa.concat_tables([TABLE, TABLE.slice(0, 1)]), other):
        with pytest.raises(PilloleError) as caught:
            verify_receipt(pills, RECEIPT)
        assert caught.value.code == "receipt_mismatch"
