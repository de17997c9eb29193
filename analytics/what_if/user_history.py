"""One user's history as it is: the entries of the ledger, the user's settings, and what follows from both.

what_if.py reads the settings of all users (`user_settings`), and makes a `LedgerRow` of each entry.
counted_users.py then asks for each user's `actual_world`.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from adapters.platform.objects import Objects
from analytics.lake.curated_files import table_of
from analytics.recompute.user_fold import dates_of
from analytics.what_if.history_parts import small_database
from analytics.what_if.timeline import RulingTerms, Timeline
from rules.book.daily import DailyTerms
from rules.book.measures import COUNTED, measures_of
from rules.book.rewards import REPAIR_REWARD
from rules.days import EPOCH, MICROSECOND, DayStarts, UnknownZone, local_date, stamp, unstamp
from rules.engagement.ledger import EARNING, EntryKind, FreezeNote, Setting
from rules.engagement.lots import Spending, expired_points
from rules.engagement.rest_days import NO_TERMS, Choice, RestDays, choice_of_text
from rules.engagement.streak import Checkpoint, Cover, net_freezes, paused_dates_a_year

NO_DATES: frozenset[date] = frozenset()
Pauses = tuple[tuple[date, date], ...]


class LedgerRow(NamedTuple):
    """An entry of the ledger (LEDGER of rules.lake.entities), with values that its event was sent with."""

    user_id: str
    kind: str
    event_type: str
    version: int  # 0 for none
    cap: str | None
    is_passive: bool
    segment: int  # how many boundaries of the timeline are not after the event
    breaks_contract: bool  # the candidate's contract refuses the event's properties
    created_at: int  # microseconds since 1970
    seq: int
    points: int
    event_id: str
    day: date
    expires_on: date | None
    held_at: str | None
    reverses: str | None
    freeze: str | None
    freeze_date: date | None
    reward_id: str | None
    measures: str | None
    # Values of the event. The first two are read only for users whose dates may be placed anew, the third
    # only for event types of which the book sums a property.
    claimed: date | None  # the date that the event claims
    zone: str | None  # the zone that this date was read in
    properties: str | None  # JSON text

    @property
    def terms_key(self) -> tuple[Any, ...]:
        """The key of the terms that judge its event: the fields of TermsKey."""
        return self[2:8]

    @property
    def at(self) -> datetime:
        """When it was written."""
        return EPOCH + self.created_at * MICROSECOND

    @property
    def counts_at(self) -> datetime:
        """When it counts. A captured hold counts from the time at which the points were held."""
        return unstamp(self.held_at) if self.kind == EntryKind.REDEEM and self.held_at else self.at

    @property
    def place(self) -> str:
        """Its place in the ledger: the stamp of its instant."""
        return stamp(self.at)

    @property
    def month(self) -> str:
        """The month in which it was written: YYYY-MM."""
        return f"{self.at:%Y-%m}"

    @property
    def is_repair(self) -> bool:
        """Whether it buys the repair of a date."""
        is_freeze = self.kind == EntryKind.REDEEM and self.freeze == FreezeNote.GRANTED
        return is_freeze and self.reward_id == REPAIR_REWARD

    @property
    def is_price(self) -> bool:
        """Whether it is a redemption at a price of the book."""
        return bool(self.version and self.reward_id and not self.freeze)


@dataclass(frozen=True, slots=True)
class UserSettings:
    """A user's settings, by the ledger and the newest row of the profile."""

    pauses: tuple[tuple[date, date], ...] = ()  # both dates are included
    skipped: frozenset[date] = NO_DATES  # dates that are no misses
    opening: Checkpoint | None = None  # see Cover
    pauses_after: tuple[tuple[date, date], ...] = ()  # the pauses that the books of the timeline allow
    # The dates of the events contradict each other (rule 8). So if some events no longer count, others of
    # them may decide on the dates.
    is_doubtful: bool = False
    chosen: tuple[Choice, ...] = ()  # the user's choices of rest days


@dataclass(slots=True)
class World:
    """A user's points and streak, as they are or as they would be."""

    earned: int  # points ever
    balance: int  # points that have not expired
    expired: int  # points
    active: set[date]  # dates with an event that keeps a streak
    cover: Cover  # what protects the streak


class MeasuresMemo:
    """The measures of events under the books of a timeline, as ledger entries have them."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        # Answers of _measure by its arguments, because many events have the same ones
        self._memo: dict[tuple[Any, ...], str | None] = {}

    def __call__(self, row: LedgerRow, terms: RulingTerms) -> str | None:
        """Return the measures of a row's event. terms: those that judge it."""
        if not terms.ruling.is_new:
            return row.measures
        key = (terms.ruling.version, row.event_type, row.measures, row.properties)
        if key not in self._memo:
            self._memo[key] = self._measure(*key)
        return self._memo[key]

    def _measure(
        self, version: int | None, kind: str, stored: str | None, properties: str | None
    ) -> str | None:
        """Return the measures of an event of a kind by the book of a version; None stands for the candidate.

        stored: the measures of the event's entry. They count if the lake does not have the event's
        properties. Measures that the book does not have are left out then.
        """
        candidate, real = self._timeline.candidate, self._timeline.real
        book = candidate if version is None else real.numbered(version).book
        measured = book.measured(kind) if book else None
        if not measured or properties is not None:
            return measures_of(_read_object(properties), measured)
        measures = (stored or COUNTED).split(",")
        return ",".join(text for text in measures if text.partition("=")[0] in (COUNTED, *measured))


def _read_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def actual_world(
    rows: Sequence[LedgerRow], settings: UserSettings, now: datetime, daily_terms: DailyTerms = NO_TERMS
) -> World:
    """Return a user's points and streak by the ledger as it is. daily_terms: of the books that there are."""
    lots: dict[date, int] = defaultdict(int)
    spendings: list[Spending] = []
    freezes: list[tuple[date, int]] = []
    clawed_back = {row.event_id for row in rows if row.kind == EntryKind.CLAWBACK}
    earned = other_points = 0
    active = set()
    for row in rows:
        kind = row.kind
        if kind in EARNING:
            earned += row.points
            if row.expires_on:
                lots[row.expires_on] += row.points
            if kind == EntryKind.EARN and not row.is_passive and row.event_id not in clawed_back:
                active.add(row.day)
        elif kind == EntryKind.BONUS:  # what another book would pay is not computed (what_if.py)
            earned += row.points
        elif kind != EntryKind.EXPIRE:
            other_points += row.points
            if row.points and kind in (EntryKind.REDEEM, EntryKind.REVERSE):
                when = row.held_at or row.reverses
                spendings.append(Spending(unstamp(when) if when else row.at, -row.points))
            if row.freeze_date and row.freeze in (FreezeNote.GRANTED, FreezeNote.REVOKED):
                freezes.append((row.freeze_date, 1 if row.freeze == FreezeNote.GRANTED else -1))
    rest = RestDays(daily_terms, settings.chosen)
    cover = Cover(
        net_freezes(freezes), settings.pauses, settings.skipped, opening=settings.opening, rest=rest
    )
    expired = expired_points(lots, spendings, now)
    return World(earned, earned + other_points - expired, expired, active, cover)


SETTINGS = ("version", "timezone", "skipped_dates", "opening")  # of a row of a profile
# The newest row of each profile, with all pauses and choices of rest days by the entries of the ledger.
NEWEST_SETTINGS = f"""
CREATE TABLE settings AS
WITH newest AS (
  SELECT user_id, unnest(arg_max({{{", ".join(f"'{n}': {n}" for n in SETTINGS)}}}, version)) FROM profiles
  GROUP BY user_id
), paused AS (
  SELECT account_id AS user_id, string_agg(DISTINCT set_to, ',' ORDER BY set_to) AS pauses FROM ledger
  WHERE setting = '{Setting.PAUSE}' GROUP BY account_id
), rested AS (
  SELECT account_id AS user_id, string_agg(DISTINCT set_to, ',' ORDER BY set_to) AS choices FROM ledger
  WHERE setting = '{Setting.REST_DAYS}' GROUP BY account_id
)
SELECT * FROM newest FULL JOIN paused USING (user_id) FULL JOIN rested USING (user_id)
"""  # noqa: S608 (no input)
WITH_COVER = """SELECT user_id, pauses, skipped_dates, opening, choices FROM settings
WHERE pauses > '' OR skipped_dates > '' OR opening > '' OR choices > ''"""
ZONES = "SELECT DISTINCT timezone FROM settings WHERE timezone > ''"
USERS_OF_ZONES = "SELECT user_id, timezone FROM settings WHERE timezone IN (SELECT unnest(?))"


def user_settings(
    objects: Objects, timeline: Timeline, now: datetime
) -> tuple[dict[str, UserSettings], dict[str, date]]:
    """Return the settings of users who have pauses, skipped dates, an opening or rest days of their own.

    Also returns the date that is today, of users for whom it is another one than in UTC.
    """
    db = small_database()
    with table_of(db, "profiles", objects, "streaks"), table_of(db, "ledger", objects, "ledger"):
        db.execute(NEWEST_SETTINGS)
        rows = db.execute(WITH_COVER).fetchall()
        starts = timeline.real.day_starts
        in_utc = local_date(now, "UTC", starts)
        today_of = {zone: _today(now, zone, starts) for (zone,) in db.execute(ZONES).fetchall()}
        others = db.execute(
            USERS_OF_ZONES, [[zone for zone, day in today_of.items() if day != in_utc]]
        ).fetchall()
    settings = {}
    for user, pauses_text, skipped_text, opening_text, choices_text in rows:
        pauses = pauses_of(pauses_text)
        skipped = frozenset(dates_of(skipped_text))
        allowed, _ = judged_pauses(pauses, timeline)
        opening = Checkpoint.of(opening_text) if opening_text else None
        chosen = tuple(choice_of_text(text) for text in (choices_text or "").split(",") if text)
        settings[user] = UserSettings(pauses, skipped, opening, allowed, chosen=chosen)
    return settings, {user: today_of[zone] for user, zone in others}


def pauses_of(text: str | None) -> Pauses:
    """Read pauses, such as `2026-01-01/2026-01-31,2026-03-01/2026-03-01`."""
    pairs = (pause.split("/") for pause in (text or "").split(",") if pause)
    return tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in pairs)


def _today(now: datetime, zone: str, starts: DayStarts) -> date:
    try:
        return local_date(now, zone, starts)
    except UnknownZone:
        return local_date(now, "UTC", starts)


def judged_pauses(pauses: Pauses, timeline: Timeline) -> tuple[Pauses, Pauses]:
    """Return the pauses that the books allow, and those that they refuse, in the order of their dates.

    The lake does not say when a user asked for a pause, so the book of the pause's first date judges it. If
    that book has the same terms for pauses as the real one, the pause is allowed, because it was allowed
    then.
    """
    allowed: list[tuple[date, date]] = []
    refused: list[tuple[date, date]] = []
    for first, last in sorted(pauses):
        at = datetime.combine(first, time(12), UTC)
        terms = timeline.book_at(at).pauses
        is_long = (last - first).days + 1 > terms.dates_max
        is_same = terms == timeline.real_at(at).pauses
        is_over = paused_dates_a_year([*allowed, (first, last)]) > terms.dates_a_year
        is_refused = not is_same and (is_long or is_over)
        (refused if is_refused else allowed).append((first, last))
    return tuple(allowed), tuple(refused)
