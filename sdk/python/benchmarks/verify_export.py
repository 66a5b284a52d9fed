"""Checks the receipt of a file of an export. Prints a line of JSON: seconds, and the most resident
memory in MiB. ``python benchmarks/verify_export.py FILE FORMAT RECEIPT``"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from pillole import verify_receipt
from pillole.exports import read_tables

file, format_, receipt = sys.argv[1:]
started = time.monotonic()
verify_receipt(read_tables(Path(file), format_), json.loads(receipt))
most_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": time.monotonic() - started, "maxRssMib": most_kib / 1024}))
