"""A position in a file that a killed process leaves whole."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from .errors import PilloleError


@dataclass(frozen=True)
class Saved:
    """What a position file holds."""

    position: str
    note: str = ""
    """What the program stored with the position: the length of its output, say."""


class PositionFile:
    """Keeps a position, and a note that belongs to it.

    A file is written beside and renamed, so that it is the old or the new one after a kill; a wrong
    checksum raises. Effects of pills happen exactly once if the note says how far they had come and
    the program takes back what came later: see the example in README. One program writes a file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def load(self) -> Saved | None:
        """What was saved last; None if nothing. Raises PilloleError ``position_file_invalid``."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._invalid(str(error)) from error
        try:
            body, checksum = text.rsplit("\n", 2)[0], text.rsplit("\n", 2)[1]
            value = json.loads(body)
            position, note = value["position"], value["note"]
        except (IndexError, ValueError, KeyError, TypeError) as error:
            raise self._invalid("it is not complete") from error
        if checksum != _checksum(body):
            raise self._invalid("its checksum is wrong")
        return Saved(str(position), str(note))

    def save(self, position: str | None, note: str = "") -> None:
        """Replaces what was saved; None, before a first position is known, saves nothing."""
        if position is None:
            return
        body = json.dumps({"position": position, "note": note})
        # One name, so that kills leave one file at most; the next save writes over it.
        beside = self._path.with_name(f".{self._path.name}.new")
        with open(beside, "w", encoding="utf-8") as file:
            file.write(f"{body}\n{_checksum(body)}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._path)

    def _invalid(self, why: str) -> PilloleError:
        message = (
            f"The position file {self._path} cannot be used: {why}. Restore it from a backup, or "
            "remove it to begin without a position."
        )
        return PilloleError("position_file_invalid", message)


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
