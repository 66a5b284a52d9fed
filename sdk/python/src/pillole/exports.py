"""Exports: a file with the pills of a range, made by the platform and checked here."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, overload

import httpx
import msgspec

from .auth import Credentials
from .errors import PilloleError
from .receipt import verify_receipt
from .rest import ACCEPT, BodyReader, Outcome, read_answer

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

ExportFormat = Literal["parquet", "arrow", "csv.gz", "ndjson.zst"]
POLL_S = 0.5
POLL_MAX_S = 5.0
DOWNLOADS_MAX = 20
"""Attempts at a download that broke; each continues where the last one ended."""
CHUNK_BYTES = 1 << 20
PART_BYTES = 16 << 20
_TIMES = ("timestamp", "received_at")
_DICTIONARIES = ["symbol", "market_state", "epoch"]
_TEXT = ("cursor", "prev", "id", "symbol", "market_state", "epoch")


class Export:
    """A file whose length, SHA-256 and, if pyarrow is installed, receipt were checked."""

    def __init__(self, path: Path, info: dict[str, Any], folder: Any = None) -> None:
        self.path = path
        self.info = info
        """The export as the API shows it, with its position and receipt."""
        self._folder = folder  # a temporary one, which ends with this object

    @property
    def receipt(self) -> dict[str, Any]:
        """Count, first and last cursor, and digest of the pills."""
        receipt: dict[str, Any] = self.info["file"]["receipt"]
        return receipt

    def to_arrow(self) -> pyarrow.Table:
        """The pills as a table. Needs pyarrow."""
        return read_table(self.path, self.info["request"]["format"])

    @overload
    def to_df(self, tz: str = ..., engine: Literal["pandas"] = ...) -> pandas.DataFrame: ...
    @overload
    def to_df(self, tz: str = ..., *, engine: Literal["polars"]) -> polars.DataFrame: ...
    def to_df(self, tz: str = "UTC", engine: Literal["pandas", "polars"] = "pandas") -> Any:
        """The pills as a data frame with aware times in ``tz``. Needs pyarrow."""
        import pyarrow as pa

        table = self.to_arrow()
        for name in _TIMES:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table[name].cast(pa.timestamp("us", tz=tz)))
        if engine == "polars":
            import polars as pl

            return pl.from_arrow(table)
        return table.unify_dictionaries().to_pandas()

    def verify_receipt(self) -> None:
        """Raises PilloleError ``receipt_mismatch`` unless the file has exactly its pills. Reads the
        file part by part. Needs pyarrow."""
        verify_receipt(read_tables(self.path, self.info["request"]["format"]), self.receipt)


def read_table(path: Path, format_: str) -> Any:
    """A file of an export as a pyarrow table."""
    import pyarrow as pa

    if format_ == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path, read_dictionary=_DICTIONARIES)
    if format_ == "arrow":
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            return reader.read_all()
    with _open_text(path, format_) as source:
        if format_ == "csv.gz":
            import pyarrow.csv as csv

            return csv.read_csv(source, convert_options=_csv_options())
        return _json_table(source)


def read_tables(path: Path, format_: str) -> Iterator[Any]:
    """The same in parts of some 100,000 pills, so that memory does not grow with the file."""
    import pyarrow as pa

    if format_ == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, read_dictionary=_DICTIONARIES) as file:
            # iter_batches reads all row groups ahead: 2 GB for 50 million pills (measured).
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
        return
    if format_ == "arrow":
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])
        return
    with _open_text(path, format_) as source:
        if format_ == "csv.gz":
            import pyarrow.csv as csv

            read = csv.ReadOptions(block_size=PART_BYTES)
            for batch in csv.open_csv(source, read_options=read, convert_options=_csv_options()):
                yield pa.Table.from_batches([batch])
            return
        rest = b""
        while block := source.read(PART_BYTES):
            lines, _, rest = (rest + block).rpartition(b"\n")
            if lines:
                yield _json_table(pa.BufferReader(lines))
        if rest:
            yield _json_table(pa.BufferReader(rest))


def _open_text(path: Path, format_: str) -> Any:
    import pyarrow as pa

    return pa.input_stream(str(path), compression="gzip" if format_ == "csv.gz" else "zstd")


def _types() -> dict[str, Any]:
    import pyarrow as pa

    times = {name: pa.timestamp("us", tz="UTC") for name in _TIMES}
    numbers = {name: pa.float64() for name in ("gross_spread_percent", "confidence")}
    flags = {name: pa.bool_() for name in ("late", "backfill")}
    return {**{name: pa.string() for name in _TEXT}, **times, **numbers, **flags}


def _csv_options() -> Any:
    import pyarrow.csv as csv

    return csv.ConvertOptions(column_types=_types(), null_values=["\\N"])


def _json_table(source: Any) -> Any:
    import pyarrow as pa
    import pyarrow.json as json

    types = _types()
    schema = pa.schema([(name, types[name]) for name in types if name not in _TIMES])
    for name in _TIMES:
        schema = schema.append(pa.field(name, pa.timestamp("us")))
    table = json.read_json(source, parse_options=json.ParseOptions(explicit_schema=schema))
    for name in _TIMES:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(types[name]))
    return table


@dataclass(frozen=True)
class ExportRequest:
    """An export that is wanted, and what becomes of its file; see `Client.export`."""

    body: dict[str, Any]
    path: str | os.PathLike[str] | None
    verify: bool
    on_progress: Callable[[dict[str, Any]], None] | None


class Exporter:
    """Creates an export, waits for it and downloads it."""

    def __init__(self, http: httpx.Client, api_url: str, credentials: Credentials) -> None:
        self._http = http
        self._origin = api_url.rstrip("/")
        self._credentials = credentials

    def run(self, request: ExportRequest) -> Export:
        """Raises PilloleError; then nothing is at its ``path`` that was not there before."""
        path = request.path
        info = self._call("POST", "/api/exports", request.body)
        try:
            info = self._wait(info, request.on_progress)
        except BaseException:
            # Nobody waits for it any more.
            with contextlib.suppress(Exception):
                self._call("DELETE", f"/api/exports/{info['id']}")
            raise
        folder = tempfile.TemporaryDirectory(prefix="pillole-") if path is None else None
        target = Path(folder.name, info["file"]["name"]) if folder is not None else Path(path or "")
        part = target.with_name(f"{target.name}.{info['id']}.part")
        try:
            self._download(info, part)
            export = Export(part, info, folder)
            if request.verify:
                export.verify_receipt()
            os.replace(part, target)
        except BaseException:
            # Another attempt makes an export of its own, so nothing would continue this file.
            part.unlink(missing_ok=True)
            raise
        export.path = target
        return export

    def _wait(
        self, info: dict[str, Any], on_progress: Callable[[dict[str, Any]], None] | None
    ) -> dict[str, Any]:
        delay_s = POLL_S
        while True:
            if on_progress is not None:
                on_progress(info)
            if info["state"] == "done":
                return info
            if info["state"] not in ("waiting", "running"):
                code = info["problem"] or "export_canceled"
                raise PilloleError(code, f"The export {info['id']} is {info['state']}: {code}.")
            time.sleep(delay_s)
            delay_s = min(POLL_MAX_S, delay_s * 1.3)
            info = self._read(info["id"])

    def _read(self, id_: str) -> dict[str, Any]:
        for attempt in range(DOWNLOADS_MAX):
            try:
                return self._call("GET", f"/api/exports/{id_}")
            except PilloleError as error:
                if error.retry != "after" or attempt == DOWNLOADS_MAX - 1:
                    raise
                time.sleep(max(POLL_S, error.retry_after_s or 0))
        raise AssertionError("unreachable")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        url = f"{self._origin}{path}"
        content = None if body is None else msgspec.json.encode(body)
        headers = {**ACCEPT, **self._credentials.headers(method, url, content)}
        if content is not None:
            headers["content-type"] = "application/json"
        answer: Outcome
        try:
            reader = BodyReader()
            with self._http.stream(method, url, headers=headers, content=content) as response:
                for part in response.iter_bytes():
                    reader.add(part)
                answer = reader.answer_of(response)
        except httpx.HTTPError as error:
            answer = error
        value: dict[str, Any] = msgspec.json.decode(read_answer(url, answer))
        return value

    def _download(self, info: dict[str, Any], part: Path) -> None:
        file = info["file"]
        with open(part, "ab") as output:
            for attempt in range(DOWNLOADS_MAX):
                try:
                    self._append(file, output)
                    break
                except httpx.HTTPError as error:
                    if attempt == DOWNLOADS_MAX - 1:
                        message = f"The download broke {DOWNLOADS_MAX} times: {error}"
                        raise PilloleError("network", message, retry="after") from error
                    time.sleep(min(POLL_MAX_S, POLL_S * (attempt + 1)))
                    # The link may have expired meanwhile.
                    file = self._read(info["id"])["file"]
            output.flush()
            os.fsync(output.fileno())
        digest = hashlib.sha256()
        with open(part, "rb") as written:
            while chunk := written.read(CHUNK_BYTES):
                digest.update(chunk)
        if digest.hexdigest() != file["sha256"]:
            message = "The file has another SHA-256 than the export: download it again."
            raise PilloleError("checksum_mismatch", message)

    def _append(self, file: dict[str, Any], output: IO[bytes]) -> None:
        at = output.seek(0, os.SEEK_END)
        if at >= file["bytes"]:
            return
        headers = {"accept-encoding": "identity"}
        if at > 0:
            headers |= {"range": f"bytes={at}-", "if-range": f'"{file["sha256"]}"'}
        with self._http.stream("GET", f"{self._origin}{file['url']}", headers=headers) as answer:
            if answer.status_code == 200 and at > 0:
                output.truncate(0)  # another file than the one that we have the beginning of
            elif answer.status_code not in (200, 206):
                raise httpx.RemoteProtocolError(f"HTTP {answer.status_code}")
            for chunk in answer.iter_raw(CHUNK_BYTES):
                output.write(chunk)
        if output.tell() < file["bytes"]:
            raise httpx.RemoteProtocolError("The body ended early.")
