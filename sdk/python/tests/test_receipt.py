"""Receipts of the released fixtures, from rows and from tables of every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from pillole import PilloleError, verify_receipt
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


def test_no_pills() -> None:
    none = {**RECEIPT, "count": 0, "first": None, "last": None, "digest": "0" * 64}
    assert receipt_of(TABLE.slice(0, 0), "k7f3") == receipt_of([], "k7f3") == none


def test_a_pill_too_few_too_many_or_another_is_noticed() -> None:
    other = _with("confidence", pa.array([1.0, *TABLE["confidence"].to_pylist()[1:]]))
    for pills in (TABLE.slice(1), pa.concat_tables([TABLE, TABLE.slice(0, 1)]), other):
        with pytest.raises(PilloleError) as caught:
            verify_receipt(pills, RECEIPT)
        assert caught.value.code == "receipt_mismatch"
