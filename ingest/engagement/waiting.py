"""The answer at once: with `Prefer: wait=2` (RFC 7240) POST /v1/events answers when its events are applied.

Waiting is reading: the user's profile at growing intervals, and the ledger once the profile has changed. A
request makes at most READS_MAX such rounds, whatever happens meanwhile.
"""

import re
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters import clock
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import HeadMoved, TooManyEntries
from ingest.engagement.acceptance import AcceptResult, AcceptStatus
from ingest.engagement.event_body import COUNTS, RESULT
from ingest.engagement.goal_views import ACHIEVEMENT, AchievementViews
from ingest.engagement.profiles import LEVEL, PROFILE, Profiles, level_view
from ingest.web.json_schema import TEXT, closed_object, list_of, text, whole
from ingest.web.routes import in_header
from rules.days import stamp, unstamp
from rules.engagement.account_state import Profile
from rules.engagement.ledger import AppliedEvents, AppliedSince
from rules.engagement.periods import closed_periods

WAIT_SECONDS_MAX = 5
# A request that waits keeps a process of the function to itself, and an account has few. So a user may keep
# five of them busy: whoever asks more often is answered without waiting.
WAITS_PER_MINUTE = 60
READS_MAX = 12  # a bound for whoever changes these pauses: ten fit into five seconds
FIRST_PAUSE_SECONDS, PAUSES_GROW_BY = 0.1, 1.4
# A duplicate that arrived earlier was applied long ago, and its entry is behind many others.
ARRIVED_WITHIN = timedelta(minutes=10)
STORED = (AcceptStatus.ACCEPTED, AcceptStatus.DUPLICATE)
PREFER = in_header(
    "Prefer",
    text(
        f"wait=N: answer 200 when the events are applied, with what they did; after N seconds, at most"
        f" {WAIT_SECONDS_MAX}, answer 202 as without it. For the events of one user. A user may do so"
        f" {WAITS_PER_MINUTE} times a minute, servers as often as they like"
    ),
)
# The answer to a batch of events that are applied.
APPLIED = closed_object(
    {
        **COUNTS,
        "results": list_of(
            closed_object(
                {
                    **RESULT,
                    "activity_date?": TEXT,
                    "points?": whole("by the cap; below 0: a fine"),
                    "closed_periods?": list_of(TEXT)
                    | {"description": "whose boards were final when it came, so that it is on none of them"},
                }
            )
        ),
        "profile": PROFILE | {"description": "after these events"},
        "new_achievements": list_of(ACHIEVEMENT, type=["array", "null"])
        | {"description": "those that the user has by these events; null: too many entries to say it"},
        "new_level": LEVEL | {"description": "the level reached by these events; null: none"},
    }
)
WAIT = re.compile(r'\s*wait\s*=\s*(?:"(\d{1,9})"|(\d{1,9}))\s*(?:;.*)?', re.ASCII | re.IGNORECASE | re.DOTALL)


def seconds_to_wait(prefer: str | None) -> int:
    """Return how many seconds a `Prefer` header asks to wait, at most WAIT_SECONDS_MAX; 0: it does not ask.

    Of several the first counts, as RFC 7240 has it.
    """
    asked = next(filter(None, map(WAIT.fullmatch, (prefer or "").split(","))), None)
    return min(int(asked[1] or asked[2]), WAIT_SECONDS_MAX) if asked else 0


def times_to_look(seconds: float) -> Iterator[None]:
    """Yield when it is time to look: at growing intervals, at most READS_MAX times in so many seconds."""
    end, pause = time.monotonic() + seconds, FIRST_PAUSE_SECONDS
    for _ in range(READS_MAX):
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        yield
        pause *= PAUSES_GROW_BY


@dataclass(frozen=True, slots=True)
class AppliedAnswer:
    """What the events of a request have done to their user."""

    events: AppliedEvents
    closed_periods: Mapping[str, list[str]]  # by event id: names of periods that were final when it came
    other_fields: dict[str, Any]  # the fields that the answer has beside the results


@dataclass(frozen=True, slots=True)
class Waiter:
    """Waits until events are applied."""

    accounts: AccountStore
    profiles: Profiles
    achievements: AchievementViews

    def wait(self, results: Sequence[AcceptResult], seconds: int) -> AppliedAnswer | None:
        """Wait until the stored events of these results are applied.

        Returns None if that takes longer, if they are of several users or arrived more than
        ARRIVED_WITHIN ago, or if none is stored.
        """
        stored = [result for result in results if result.status in STORED]
        arrivals = {result.event_id or "": result.arrived_at for result in stored}
        users = {result.user_id for result in stored}
        if len(users) != 1 or min(arrivals.values()) < stamp(clock.now() - ARRIVED_WITHIN):
            return None
        (user,) = users
        seen_up_to = max(arrivals.values())  # an entry is later than its event's arrival
        for _ in times_to_look(seconds):
            profile = self.accounts.profile(user)
            if profile.head is None or profile.head.created_at <= seen_up_to:
                continue
            seen_up_to = profile.head.created_at  # not again before there are further entries
            applied = self.accounts.ledger.applied_since(user, arrivals, profile.head.created_at)
            if applied.events.keys() == arrivals.keys():
                types = {result.event_type for result in stored}
                with suppress(HeadMoved):  # there are further entries already
                    closed, now = self._closed(applied.events, arrivals), clock.now()
                    return AppliedAnswer(applied.events, closed, self._view(profile, applied, types, now))
        return None

    def _closed(self, applied: AppliedEvents, arrivals: Mapping[str, str]) -> dict[str, list[str]]:
        """Return the events that came after boards of their dates were final, with the periods' names."""
        terms = self.accounts.daily_terms()
        closed = {
            event_id: [
                period.name for period in closed_periods(event.day, unstamp(arrivals[event_id]), terms)
            ]
            for event_id, event in applied.items()
        }
        return {event_id: names for event_id, names in closed.items() if names}

    def _view(
        self, profile: Profile, applied: AppliedSince, event_types: Container[str], now: datetime
    ) -> dict[str, Any]:
        """Return the profile after the events, and what is new by them. Raises HeadMoved.

        Bonuses and expired points are in it that the account's next write notes. A level is new by the events
        with which the points have reached it, whatever came after them.
        """
        settled = profile
        try:
            settled = self.profiles.settler.preview(profile, now)
            achievements = self.achievements.new_by(profile, applied.events.keys(), event_types, now)
            paid = sum(each.get("paid", 0) for each in achievements)
        except TooManyEntries:
            achievements, paid = None, 0
        levels = self.profiles.settler.books.books().at(now).book.levels
        bonuses = paid + settled.total_points - profile.total_points
        points = sum(event.points for event in applied.events.values()) + bonuses
        after = settled.total_points - applied.earned_later
        level, before = level_view(levels, after), level_view(levels, after - points)
        is_new = level is not None and (before is None or level["name"] != before["name"]) and points > 0
        return {
            "profile": self.profiles.view_of(settled, now),
            "new_achievements": achievements,
            "new_level": level if is_new else None,
        }
