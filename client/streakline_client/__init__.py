"""Ask Streakline's people questions, and read their answers."""

from streakline_client.client import Streakline
from streakline_client.errors import Refused, StreaklineError, Unreachable
from streakline_client.model import Answer, Question, Stats
from streakline_client.transport import Reply, Request, Transport, over_http

__all__ = [
    "Answer",
    "Question",
    "Refused",
    "Reply",
    "Request",
    "Stats",
    "Streakline",
    "StreaklineError",
    "Transport",
    "Unreachable",
    "over_http",
]
