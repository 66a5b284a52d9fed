"""``python -m pillole tail | latest | history | export | verify``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from .client import Client
from .errors import PilloleError
from .models import Gap, Item, Pill
from .position_file import PositionFile

OK, FAILED, USAGE, REFUSED, LIMITED, UNREACHABLE, NO, MISSING, INTERRUPTED = (
    *(0, 1, 2, 3, 4, 5, 6, 7),
    130,
)
_LIMITS = frozenset(
    {"rate_limited", "daily_quota_exceeded", "connection_limit", "overloaded", "export_limit"}
)
_SETUP = frozenset({"key_missing", "key_malformed", "not_configured", "position_file_invalid"})
_AWAY = frozenset({"network", "timeout", "not_pillole", "endpoint_unavailable", "connection_lost"})
_AWAY |= {"retries_exhausted"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code, the same as those of the TypeScript client's."""
    options = _parser().parse_args(arguments)
    if threading.current_thread() is threading.main_thread():
        # A supervisor's SIGTERM ends like Ctrl-C, so that tail prints the position.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        key = os.environ.get("PILLOLE_KEY")
        if options.key_file is not None:
            with open(options.key_file, encoding="utf-8") as file:
                key = file.read().strip()
        with Client(key, api_url=options.api_url, stream_url=options.stream_url) as client:
            return int(options.run(client, options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has ended, as `head` does.
        sys.stderr.close()
        return OK
    except OSError as error:
        # Of the files that the command line names.
        print(f"pillole: {error}", file=sys.stderr)
        return USAGE
    except PilloleError as error:
        print(f"pillole: {error}", file=sys.stderr)
        return _exit_code(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pillole",
        description="The key comes from --key-file, else from PILLOLE_KEY.",
    )
    parser.add_argument("--key-file", help="file that holds the API key")
    parser.add_argument("--api-url", default=os.environ.get("PILLOLE_API_URL"))
    parser.add_argument("--stream-url", default=os.environ.get("PILLOLE_STREAM_URL"))
    commands = parser.add_subparsers(required=True, metavar="command")
    tail = commands.add_parser("tail", help="pills and gaps as they come, as lines of JSON")
    tail.add_argument("symbols", nargs="+")
    tail.add_argument("--mode", choices=("all", "latest"), default="all")
    tail.add_argument("--position-file", help="resume from here, and keep the position here")
    tail.add_argument("--count", type=int, help="end after so many pills")
    tail.set_defaults(run=_tail)
    latest = commands.add_parser("latest", help="the newest pill of each symbol")
    latest.add_argument("symbols", nargs="+")
    latest.set_defaults(run=_latest)
    history = commands.add_parser("history", help="the pills of a range, as lines of JSON")
    history.add_argument("symbols", nargs="+")
    history.add_argument("--from", dest="start", required=True)
    history.add_argument("--to", dest="end")
    history.set_defaults(run=_history)
    export = commands.add_parser("export", help="the pills of a range, as a file that is checked")
    export.add_argument("symbols", nargs="*", help="all by default")
    export.add_argument("--from", dest="start", required=True)
    export.add_argument("--to", dest="end", required=True)
    export.add_argument(
        "--format", choices=("parquet", "arrow", "csv.gz", "ndjson.zst"), default="parquet"
    )
    export.add_argument("--output", required=True, help="file, written beside and renamed")
    export.add_argument("--verify", action="store_true", help="check the receipt too (pyarrow)")
    export.set_defaults(run=_export)
    verify = commands.add_parser("verify", help="exit code 0 only if the symbol is usable now")
    verify.add_argument("symbol")
    verify.set_defaults(run=_verify)
    return parser


def _print(value: object) -> None:
    print(msgspec.json.encode(value).decode(), flush=True)


def _tail(client: Client, options: argparse.Namespace) -> int:
    symbols = "*" if options.symbols == ["*"] else options.symbols
    file = None if options.position_file is None else PositionFile(options.position_file)
    saved = None if file is None else file.load()
    resume = None if saved is None else saved.position
    # After the line is printed, so that a signal in between loses nothing.
    shown = resume
    missing = False
    pills = 0
    with client.stream(symbols, mode=options.mode, resume=resume) as stream:
        try:
            for item in stream:
                _print(_tagged(item))
                shown = stream.position
                missing = missing or (isinstance(item, Gap) and not item.filled)
                pills += isinstance(item, Pill)
                if file is not None:
                    file.save(shown)
                if options.count is not None and pills >= options.count:
                    break
        finally:
            # The signal may have come before the file was written.
            if file is not None:
                file.save(shown)
            print(f"position: {shown}", file=sys.stderr)
    return MISSING if missing else OK


def _tagged(item: Item) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(item)
    return {"type": type(item).__name__.removesuffix("Frame").lower(), **fields}


def _latest(client: Client, options: argparse.Namespace) -> int:
    answer = client.latest(options.symbols)
    _print(answer)
    return NO if answer.errors else OK


def _history(client: Client, options: argparse.Namespace) -> int:
    for pill in client.history(options.symbols, options.start, options.end):
        _print(pill)
    return OK


def _export(client: Client, options: argparse.Namespace) -> int:
    def tell(info: dict[str, Any]) -> None:
        progress = info["progress"]
        print(f"{info['state']}: {progress['percent']} %", file=sys.stderr)

    export = client.export(
        options.start,
        options.end,
        symbols=options.symbols or None,
        format=options.format,
        path=options.output,
        verify=options.verify,
        on_progress=tell,
    )
    _print({"path": str(export.path), **export.info})
    return OK


def _verify(client: Client, options: argparse.Namespace) -> int:
    answer = client.usable(options.symbol)
    _print(answer)
    return OK if answer.usable else NO


def _exit_code(error: PilloleError) -> int:
    if error.code in _SETUP:
        return USAGE
    if error.code in _LIMITS:
        return LIMITED
    if error.code in _AWAY:
        return UNREACHABLE
    return REFUSED if error.retry == "never" else FAILED
