"""What the customer's systems are told: types, numbers, and ids that never change."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from rules.outgoing.subjects import named

NAMESPACE = UUID("5f0f6f57-20f5-5c0a-9a25-6e3f6a8f0b62")


class NoticeType(StrEnum):
    """What a notification tells of.

    STREAK_LOST: a date was missed, or events were reversed. STREAK_CORRECTED: a late event overturned a loss
    that was told of. PROFILE_CHANGED: anything else that the profile shows, or achievements that are no news.
    LEAD_UPDATED: features of a lead, or whose leaf it is. TEST: somebody asked for it.
    """

    STREAK_EXTENDED = "streak.extended"
    STREAK_AT_RISK = "streak.at_risk"
    STREAK_LOST = "streak.lost"
    STREAK_CORRECTED = "streak.corrected"
    POINTS_CHANGED = "points.changed"
    ACHIEVEMENT_EARNED = "achievement.earned"
    REWARD_REDEEMED = "reward.redeemed"
    HOLD_EXPIRED = "hold.expired"
    LEAD_UPDATED = "lead.updated"
    QUESTION_CLOSED = "question.closed"
    PROFILE_CHANGED = "profile.changed"
    TEST = "endpoint.test"


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell. data: of a user with `profile`, all that is shown of the user after it."""

    type: NoticeType
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A notice with its place. number: of the holder's notifications, from 1. at: a stamp, when it was so."""

    holder: str
    number: int
    at: str
    notice: Notice

    @property
    def message_id(self) -> str:
        """The webhook-id. It is the same at every attempt and every endpoint."""
        name = f"{self.holder}\x00{self.number}\x00{self.notice.type.value}\x00{self.at}"
        return f"msg_{uuid5(NAMESPACE, name).hex}"

    @property
    def content(self) -> dict[str, Any]:
        """What is sent, as JSON."""
        about = {**named(self.holder), "number": self.number}
        return {"type": self.notice.type.value, "timestamp": self.at, "data": {**about, **self.notice.data}}

    @property
    def body(self) -> bytes:
        """The bytes that are signed and sent."""
        return json.dumps(self.content, separators=(",", ":"), ensure_ascii=False).encode()


def numbered(holder: str, after: int, at: str, found: Iterable[Notice]) -> list[Notification]:
    """Return notices as notifications that follow the one with the number `after`."""
    return [Notification(holder, number, at, each) for number, each in enumerate(found, start=after + 1)]
