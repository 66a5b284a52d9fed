"""Client of the pillole platform: signals of APAC markets over REST, streams and webhooks."""

from .auth import Auth, OutgoingRequest, bearer_tokens
from .client import AsyncClient, Client
from .errors import PilloleError, WebhookVerificationError
from .exports import Export
from .history import AsyncHistory, History
from .models import Gap, HistoryPage, Item, Latest, LatestMany, Pill, Refused, Snapshot, Usable
from .position_file import PositionFile, Saved
from .receipt import receipt_of, verify_receipt
from .signing import sign_requests
from .stream.streams import AsyncStream, Stream
from .webhooks import challenge_answer, verify_webhook

__all__ = [
    "AsyncClient",
    "AsyncHistory",
    "AsyncStream",
    "Auth",
    "Client",
    "Export",
    "Gap",
    "History",
    "HistoryPage",
    "Item",
    "Latest",
    "LatestMany",
    "OutgoingRequest",
    "Pill",
    "PilloleError",
    "PositionFile",
    "Refused",
    "Saved",
    "Snapshot",
    "Stream",
    "Usable",
    "WebhookVerificationError",
    "bearer_tokens",
    "challenge_answer",
    "receipt_of",
    "sign_requests",
    "verify_receipt",
    "verify_webhook",
]
__version__ = "0.1.0"
