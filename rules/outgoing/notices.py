"""Notifications of the customer's systems, the endpoints that want them, and when an attempt is repeated or
given up (docs/rules.md, rule 18).

A *holder* is a user, or a thing of a part, such as a lead. It is written as rules.user_ids.user_holder writes
a user, or as a prefix with an id, such as `lead/`. The notifications of a holder are numbered, and arrive in
this order: a holder has a *lane* to each endpoint, in which the next notification is sent when the one before
has arrived. If an endpoint refuses a holder's notification, that delays no other holder. An endpoint that
refuses everything has longer and longer pauses.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from rules.engagement.leagues import Zone
from rules.outgoing.notice_kinds import FieldForms, NoticeKind
from rules.parts import Part, said
from rules.user_ids import user_holder, user_id_problem, user_of_holder

# The types of parts, beside NoticeType
KINDS_OF_PARTS: dict[str, NoticeKind] = {kind.type: kind for kinds in said("notices") for kind in kinds}
# Those of which an endpoint says whose it wants
OWNED_KINDS = tuple(kind for kind in KINDS_OF_PARTS.values() if kind.whose)
BOARD = "board/"  # begins the holder of a final result: board/weekly/2026-W48
HOLDER_NAMES = {BOARD: "result"} | {kind.holder: kind.holder_name for kind in KINDS_OF_PARTS.values()}
NAMESPACE = UUID("5f0f6f57-20f5-5c0a-9a25-6e3f6a8f0b62")
ENDPOINTS_MAX = 20  # of a deployment: each change of a profile is one transaction with all of them
FRIEND = "friend_id"  # the field of `data` with another user
BUS = "event-bus"  # the id of the EventBridge bus, which is an endpoint, too
AT_LEAST = "at_least"
# How long a lane waits after its first failure in a row, its second, and so on.
RETRY_DELAYS = tuple(timedelta(seconds=seconds) for seconds in (5, 10, 30, 60, 120, 600, 1800, 3600))
# A notification is tried for at least three days. The hours beyond let a last attempt come after the third
# day.
RETRY_WINDOW = timedelta(hours=76)
# After a round in which an endpoint has refused this many lanes and accepted none, it has a pause, twice as
# long each time.
REFUSED_MAX = 3
BACKOFF_MIN, BACKOFF_MAX = timedelta(seconds=30), timedelta(hours=1)
Filters = Mapping[str, Mapping[str, Sequence[Any]]]
KEPT = timedelta(days=30)  # how long a notification is kept, for replays and for disabled endpoints


def is_user(holder: str) -> bool:
    """Return whether a holder is a user. The holder of an endpoint's test messages counts as a user."""
    return not holder.startswith(tuple(HOLDER_NAMES))


def board_holder(board: str, period: str) -> str:
    """Return the holder of the notification of a final result. period: its name."""
    return f"{BOARD}{board}/{period}"


def holder_names(holder: str) -> dict[str, str]:
    """Return the field by which messages name a holder, such as {"lead_id": "..."}."""
    for prefix, name in HOLDER_NAMES.items():
        if holder.startswith(prefix):
            return {name: holder.removeprefix(prefix)}
    return {"user_id": user_of_holder(holder) or holder}


def holder_of(message: Mapping[str, Any]) -> str:
    """Return the holder that a message names, as holder_names wrote it; raises KeyError."""
    for prefix, name in HOLDER_NAMES.items():
        if name in message:
            return prefix + str(message[name])
    return user_holder(str(message["user_id"]))


class NoticeType(StrEnum):
    """What a notification is about."""

    STREAK_EXTENDED = "streak.extended"
    STREAK_AT_RISK = "streak.at_risk"
    STREAK_LOST = "streak.lost"  # a date was missed, or events were reversed
    STREAK_CORRECTED = "streak.corrected"  # a late event overturned a loss that was notified
    POINTS_CHANGED = "points.changed"
    LEVEL_CHANGED = "level.changed"  # up, or down after a clawback
    ACHIEVEMENT_EARNED = "achievement.earned"
    REWARD_REDEEMED = "reward.redeemed"
    HOLD_EXPIRED = "hold.expired"
    LEAGUE_CLOSED = "league.closed"  # the user was in a week's league, which has closed
    FRIEND_REQUESTED = "friend.requested"  # of the user, who may answer
    FRIEND_ADDED = "friend.added"  # a pair begins; both sides are notified
    FRIEND_ENDED = "friend.ended"  # and it has ended; nobody is told why, or by whom
    BOARD_FINISHED = "board.finished"  # the result of a period is final
    # Anything else that the profile shows, or achievements that are no news
    PROFILE_CHANGED = "profile.changed"
    TEST = "endpoint.test"  # somebody asked for it


# These name another user, too, and have an instant in place of the profile: its field, by type.
FRIEND_TYPES = {
    NoticeType.FRIEND_REQUESTED: "since",
    NoticeType.FRIEND_ADDED: "since",
    NoticeType.FRIEND_ENDED: "ended_at",
}
# The part that a type is of, if a deployment may leave it out.
PART_OF_TYPE: dict[str, Part] = {kind.type: kind.part for kind in KINDS_OF_PARTS.values()}
TYPES: tuple[str, ...] = (*NoticeType, *KINDS_OF_PARTS)
_OF_USER = {"user_id": str, "number": int}
# What a filter may ask for: by type, the fields of `data` that are texts or numbers. A text that is one
# of a few values has them here.
FILTER_FIELDS: Mapping[str, FieldForms] = {
    NoticeType.STREAK_EXTENDED: {**_OF_USER, "from": int, "current_streak": int},
    NoticeType.STREAK_AT_RISK: {**_OF_USER, "lapses_at": str},
    NoticeType.STREAK_LOST: {**_OF_USER, "lost_streak": int, "reason": ("missed", "reversed")},
    NoticeType.STREAK_CORRECTED: {**_OF_USER, "lost_streak": int, "current_streak": int},
    NoticeType.POINTS_CHANGED: {**_OF_USER, "change": int, "earned": int},
    NoticeType.LEVEL_CHANGED: {
        **_OF_USER,
        **dict.fromkeys(("level", "title", "level_before"), str),
        "direction": ("up", "down"),
    },
    NoticeType.ACHIEVEMENT_EARNED: {
        **_OF_USER,
        **dict.fromkeys(("achievement", "title", "achieved_at"), str),
        "points": int,
    },
    NoticeType.REWARD_REDEEMED: {
        **_OF_USER,
        **dict.fromkeys(("redemption", "reward_id", "title", "brand"), str),
        "price_points": int,
    },
    NoticeType.HOLD_EXPIRED: {**_OF_USER, "hold_id": str, "points": int, "reward_id": str, "until": str},
    NoticeType.LEAGUE_CLOSED: {
        **_OF_USER,
        **dict.fromkeys(("week", "first", "last", "division", "division_after", "closed_at"), str),
        **dict.fromkeys(("rank", "points", "members"), int),
        "zone": tuple(zone.value for zone in Zone),
    },
    **{name: {**_OF_USER, FRIEND: str, instant: str} for name, instant in FRIEND_TYPES.items()},
    NoticeType.BOARD_FINISHED: {
        **dict.fromkeys(("result", "board", "period", "first", "last", "group", "final_at"), str),
        "users": int,
        "number": int,
    },
    NoticeType.PROFILE_CHANGED: _OF_USER,
    **{kind.type: kind.fields for kind in KINDS_OF_PARTS.values()},
}
PEOPLE = ("user_id", FRIEND, *(kind.whose_data for kind in OWNED_KINDS))


def filter_problem(kind: str, name: str, wanted_values: Sequence[Any]) -> str:
    """Return why a field of a type's filter would never match as it is meant; "" if it may."""
    fields = FILTER_FIELDS[kind]
    if name not in fields:
        return f"is no text or number of {kind}: {', '.join(sorted(fields))} are"
    form = fields[name]
    for wanted in wanted_values:
        if form is int:
            if isinstance(wanted, (str, bool)) or (isinstance(wanted, float) and not wanted.is_integer()):
                return f"is a number, and never {wanted!r}"
        elif not isinstance(wanted, str):
            return f"is a text, and never {wanted!r}"
        elif isinstance(form, tuple) and wanted not in form:
            return f"is {' or '.join(form)}, and never {wanted!r}"
        elif name in PEOPLE and (problem := user_id_problem(wanted)):
            return f"is a user id, which {problem}"
    return ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One notification before it has its number."""

    type: str  # one of TYPES
    # A user's notice has `profile` in it, the whole profile after the change, but for FRIEND_TYPES
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A notice with its holder and number."""

    holder: str
    number: int  # of the holder's notifications, from 1
    at: str  # the stamp of the change
    notice: Notice

    @property
    def message_id(self) -> str:
        """The webhook-id. It is the same at every attempt and every endpoint."""
        name = f"{self.holder}\x00{self.number}\x00{self.notice.type}\x00{self.at}"
        return f"msg_{uuid5(NAMESPACE, name).hex}"

    @property
    def content(self) -> dict[str, Any]:
        """The JSON object that is sent."""
        return {"type": str(self.notice.type), "timestamp": self.at, "data": self.data}

    @property
    def data(self) -> dict[str, Any]:
        """What is sent of the change: of whom it is, its number, and the notice's own fields."""
        return {**holder_names(self.holder), "number": self.number, **self.notice.data}

    @property
    def body(self) -> bytes:
        """The bytes that are signed and sent."""
        return json.dumps(self.content, separators=(",", ":"), ensure_ascii=False).encode()


def number_notices(holder: str, after: int, at: str, notices: Iterable[Notice]) -> list[Notification]:
    """Return notices as notifications that follow the one with the number `after`."""
    return [
        Notification(holder, number, at, notice) for number, notice in enumerate(notices, start=after + 1)
    ]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of an organization (an app), or the bus.

    An endpoint gets notifications of all users, and of things of its organization, or of those whom it names
    (`whose`). The bus gets all notifications.
    """

    endpoint_id: str
    organization_id: str
    url: str
    types: frozenset[str] = frozenset()  # the types of notifications that it wants; empty: all types
    # Type -> field of `data` -> values. The field must have one of the values.
    # Example: `{"streak.extended": {"current_streak": [7, {"at_least": 30}]}}`
    filters: Filters = field(default_factory=dict)
    description: str = ""
    created_at: str = ""
    disabled: str = ""  # why the endpoint gets nothing, so that notifications wait; "": it is enabled
    # By NoticeKind.whose: of whose things it is notified. Example: `{"agents": {"quiz"}}`
    whose: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def wants(self, notification: Notification) -> bool:
        """Return whether the endpoint is to get a notification. A test is always wanted."""
        notice = notification.notice
        if notice.type == NoticeType.TEST:
            return True
        if not self.may_want(notice.type) or not self._may_know_holder(notice):
            return False
        fields = self.filters.get(notice.type, {})
        data = notification.data if fields else {}
        return all(
            any(_meets(data.get(name), wanted) for wanted in wanted_values)
            for name, wanted_values in fields.items()
        )

    def may_want(self, kind: str) -> bool:
        """Return whether the endpoint has asked for a type."""
        return not self.types or kind in self.types

    def _may_know_holder(self, notice: Notice) -> bool:
        """Return whether the notice is of a holder that the endpoint may know of."""
        if self.endpoint_id == BUS:
            return True
        kind = KINDS_OF_PARTS.get(notice.type)
        return kind is None or notice.data[kind.whose_data] in self.known_of(kind)

    def known_of(self, kind: NoticeKind) -> Collection[str]:
        """Return of whose things of a kind the endpoint may know."""
        return self.whose.get(kind.whose, ()) if kind.whose else (self.organization_id,)


def silent_filters(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """Yield (field, reason) of what keeps an endpoint from ever getting what it asks for."""
    for kind, fields in endpoint.filters.items():
        if not endpoint.may_want(kind):
            yield f"filters.{kind}", "is of a type that types does not name"
        for name, wanted_values in fields.items():
            if problem := filter_problem(kind, name, wanted_values):
                yield f"filters.{kind}.{name}", problem
    own: dict[tuple[str, str], Collection[str]] = {
        (kind.type, kind.whose_data): endpoint.known_of(kind) for kind in KINDS_OF_PARTS.values()
    }
    for (notice_type, name), known in own.items():
        wanted_values = endpoint.filters.get(notice_type, {}).get(name, ())
        texts = {wanted for wanted in wanted_values if isinstance(wanted, str)}
        if texts and texts.isdisjoint(known):
            yield f"filters.{notice_type}.{name}", "names none that this endpoint may hear of"
    for own_kind in OWNED_KINDS:
        asks = endpoint.types == {own_kind.type} or own_kind.type in endpoint.filters
        if asks and not endpoint.whose.get(own_kind.whose):
            yield own_kind.whose, f"are missing: without them an endpoint hears of {own_kind.nobody}"


def next_attempt(failures: int, now: datetime) -> datetime:
    """Return when a lane is tried again after this many failures in a row (1 or more)."""
    return now + RETRY_DELAYS[min(failures, len(RETRY_DELAYS)) - 1]


def is_given_up(failing_since: datetime, now: datetime) -> bool:
    """Return whether a notification that has just failed is not tried again.

    failing_since: the instant of the notification, or of its lane's first failure if that was later.
    """
    return now - failing_since >= RETRY_WINDOW


def backoff_after(failures: int) -> timedelta:
    """Return the pause of an endpoint that has refused this many rounds in a row (1 or more)."""
    longest: timedelta = min(BACKOFF_MAX, BACKOFF_MIN * 2 ** min(failures - 1, 16))
    return longest


def _meets(value: Any, wanted: Any) -> bool:
    """Return whether a value is the wanted one; or, for {"at_least": n}, a number of n or more.

    In Python true equals 1. Here it does not.
    """
    if isinstance(wanted, Mapping):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and value >= wanted[AT_LEAST]
    return bool(wanted == value) and isinstance(wanted, bool) == isinstance(value, bool)
