# Receives and verifies webhooks with only Python's standard library (3.9 or newer).
#
#   PILLOLE_WEBHOOK_SECRET=whsec_… PORT=8000 python3 verify-webhook.py
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# region: verify
import base64
import hashlib
import hmac
import re
import time


def verify(body: bytes, headers, secrets: list) -> None:
    """Raises ValueError unless it was signed with one of the secrets within the last 5 minutes.

    body: the raw body, byte for byte; headers: any mapping whose .get() ignores case
    """
    message_id = headers.get("webhook-id") or ""
    timestamp = headers.get("webhook-timestamp") or ""
    signatures = (headers.get("webhook-signature") or "").split(" ")
    if not message_id or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise ValueError("not a signed webhook")
    if abs(time.time() - int(timestamp)) > 300:
        raise ValueError("too old or too new")
    content = f"{message_id}.{timestamp}.".encode() + body
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        mac = hmac.new(key, content, hashlib.sha256).digest()
        expected = b"v1," + base64.b64encode(mac)
        for signature in signatures:
            if hmac.compare_digest(signature.encode(), expected):
                return
    raise ValueError("no signature matches")
# end


SECRETS = os.environ.get("PILLOLE_WEBHOOK_SECRET", "").split()
if not SECRETS:
    raise SystemExit("Set PILLOLE_WEBHOOK_SECRET to the endpoint's secret.")
BODY_BYTES_MAX = 1_048_576


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 15

    def do_POST(self):
        length = self.headers.get("content-length") or ""
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            return self.answer(413, b"")
        body = self.rfile.read(int(length))  # the raw body, before any parser
        try:
            verify(body, self.headers, SECRETS)
        except ValueError as error:
            return self.answer(401, f"{error}\n".encode())
        event = json.loads(body)
        print(self.headers["webhook-id"], event["type"], flush=True)
        # A test needs the challenge, anything else any 2xx. Answer within 15 s, then work.
        is_test = event["type"] == "endpoint.test"
        self.answer(200, event["data"]["challenge"].encode() if is_test else b"")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
