"""A Streakline service: a user's events, streak and points, with a queue that survives; questions."""

from streakline_client.client import Streakline
from streakline_client.profile import ShownProfile, estimated
from streakline_client.questions import Answer, Question, Stats
from streakline_client.queue.sender import RefusedEvent, Trouble
from streakline_client.server import Sent, ServerEvent, StreaklineServer
from streakline_client.shapes import Applied
from streakline_client.tracker import Queueing, Tracked
from streakline_client.transport import (
    Refused,
    Reply,
    Request,
    StreaklineError,
    Transport,
    Unreachable,
    over_http,
)

__all__ = [
    "Answer",
    "Applied",
    "Question",
    "Queueing",
    "Refused",
    "RefusedEvent",
    "Reply",
    "Request",
    "Sent",
    "ServerEvent",
    "ShownProfile",
    "Stats",
    "Streakline",
    "StreaklineError",
    "StreaklineServer",
    "Tracked",
    "Transport",
    "Trouble",
    "Unreachable",
    "estimated",
    "over_http",
]
