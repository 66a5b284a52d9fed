"""Posts one pill. A failure that may pass is repeated with the same id, so the pill counts once.

    python post_pill.py SYMBOL SPREAD [STACK_JSON]
The address comes from stack.json, which `npm start` writes; a token from INGEST_CREDENTIAL.
"""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

if len(sys.argv) not in (3, 4):
    sys.exit("Usage: python post_pill.py SYMBOL SPREAD [STACK_JSON]")
symbol, spread = sys.argv[1], float(sys.argv[2])
stack = sys.argv[3] if len(sys.argv) == 4 else ".local/stack.json"
if not os.path.exists(stack):
    sys.exit(f'No running stack: {stack} does not exist. Run "npm start", or name its stack.json.')
with open(stack, encoding="utf-8") as file:
    url = json.load(file)["ingest"] + "/api/pillole"

pill = {
    "id": str(uuid.uuid4()),
    "timestamp": datetime.now(timezone.utc).isoformat(),
    "symbol": symbol,
    "gross_spread_percent": spread,
    "market_state": "open",
    "confidence": 90,
}
headers = {"Content-Type": "application/json"}
if "INGEST_CREDENTIAL" in os.environ:
    headers["Authorization"] = "Bearer " + os.environ["INGEST_CREDENTIAL"]

for attempt in range(8):
    request = urllib.request.Request(url, json.dumps(pill).encode(), headers)
    wait_s = random.random() * min(5, 0.1 * 2**attempt)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            print(answer.read().decode())
            sys.exit()
    except urllib.error.HTTPError as error:
        if error.code != 429 and error.code < 500:
            sys.exit(f"The pill was refused: {error.read().decode()}")
        wait_s += float(error.headers.get("Retry-After", 0))
    except OSError:  # unreachable, reset or too late: the pill may have been stored
        pass
    time.sleep(wait_s)
sys.exit(f"No answer after 8 attempts. Try again later with the same id: {pill['id']}")
