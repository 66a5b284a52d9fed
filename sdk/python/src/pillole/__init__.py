"""Client of the pillole platform: signals of APAC markets over REST, streams and webhooks."""

from .client import AsyncClient, Client
from .errors import PilloleError, WebhookVerificationError
from .history import AsyncHistory, History
from .models import Gap, HistoryPage, Item, Latest, LatestMany, Pill, Refused, Snapshot, Usable
from .position_file import PositionFile, Saved
from .stream.streams import AsyncStream, Stream
from .webhooks import challenge_answer, verify_webhook

__all__ = [
    "AsyncClient",
    "AsyncHistory",
    "AsyncStream",
    "Client",
    "Gap",
    "History",
    "HistoryPage",
    "Item",
    "Latest",
    "LatestMany",
    "Pill",
    "PilloleError",
    "PositionFile",
    "Refused",
    "Saved",
    "Snapshot",
    "Stream",
    "Usable",
    "WebhookVerificationError",
    "challenge_answer",
    "verify_webhook",
]
__version__ = "0.1.0"
