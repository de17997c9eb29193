"""An account of ten years, made by the rules alone, and its items.

Twenty events a week, a freeze a fortnight that covers a missed date, eight pauses a year, forty changes of zone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

from adapters.engagement.account_items import day_attributes, entry_item, profile_from, profile_item
from adapters.platform.items import Item, decode_item, encode_item, item_bytes
from rules.book.daily import DailyTerms
from rules.days import DAY
from rules.engagement.account import change_timezone, decide, decide_settings
from rules.engagement.account_state import Account, Day, Decision, Profile
from rules.engagement.carriers import split_carriers
from rules.engagement.earnings import dates_beside
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, Entry, FreezeNote
from rules.engagement.rest_days import NO_TERMS, RestDays
from rules.engagement.streak import Cover
from tests.support.account_world import grant
from tests.support.engagement_strategies import event
from tests.support.short_profiles import with_pause

YEARS = 10
SECOND = timedelta(seconds=1)
ZONES = ("Europe/Berlin", "America/New_York")
SHARDS = 4
FORTNIGHT, PAUSED_EVERY, MOVED_EVERY = 14, 46, 91  # dates


@dataclass
class TenYears:
    """The account after the last date. sizes: of the profile's item after each write, in bytes."""

    user_id: str
    last: date
    terms: DailyTerms = NO_TERMS
    profile: Profile = field(init=False)
    days: dict[date, Day] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    written: Item = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    now: datetime = field(init=False)

    def __post_init__(self) -> None:
        cover = Cover(rest=RestDays(self.terms))
        self.profile = Profile(self.user_id, alias="a name for the boards", cover=cover)
        first = self.last - timedelta(days=365 * YEARS)
        for number in range((self.last - first).days + 1):
            self._live(first + number * DAY, number)

    def _live(self, day: date, number: int) -> None:
        self.now = datetime.combine(day, time(13), UTC)
        zone = ZONES[number // MOVED_EVERY % 2]
        if number % MOVED_EVERY == 0:
            self._set(change_timezone(self.profile, zone, self.now))
        if number % FORTNIGHT == 0:
            self._decide(self._account([day]), (), [grant(day)])
        if number % PAUSED_EVERY == PAUSED_EVERY - 2:
            self._set(with_pause(self.profile, day + DAY, day + DAY))
        is_missed = number % FORTNIGHT == FORTNIGHT - 3 or number % PAUSED_EVERY == PAUSED_EVERY - 1
        if not is_missed or day == self.last:
            hours = (9, 11, 12) if number % 7 else (9, 11)
            events = [self._event(day, hour, zone) for hour in hours]
            self._decide(self._account([day]), events)

    def _event(self, day: date, hour: int, zone: str) -> Event:
        at = datetime.combine(day, time(hour), UTC)
        made = event(f"{self.user_id} {at}", day, zone=zone, created_at=at + SECOND, at=at)
        position = f"{at:%Y-%m-%dT%H:%M:%S}.000/{at:3%Y%m%d}00000000000{at:%H}"
        return replace(made, user_id=self.user_id, stream_position=position)

    def _account(self, dates: Sequence[date]) -> Account:
        return Account(self.profile, {day: self.days.get(day) for day in dates_beside(dates)})

    def _set(self, changed: Profile) -> None:
        self._take(decide_settings(self._account([]), changed, self.now))

    def _decide(self, account: Account, events: Sequence[Event], commands: Sequence[Draft] = ()) -> None:
        self._take(decide(account, events, self.now, commands))

    def _take(self, decision: Decision) -> None:
        self.now += SECOND
        self.entries += [
            replace(entry, active=False) for part in split_carriers(decision.entries) for entry in part
        ]
        self.days |= decision.days
        self.written = profile_item(decision.profile, SHARDS, self.now)
        self.sizes.append(item_bytes(self.written))
        self.profile = profile_from(decode_item(self.written), self.terms)

    @property
    def covered(self) -> set[date]:
        """The dates that a freeze covered."""
        spent = (each.draft.freeze_date for each in self.entries if each.draft.freeze is FreezeNote.SPENT)
        return {date.fromisoformat(day) for day in spent if day}

    def items(self) -> dict[str, list[Item]]:
        """Return the items by table."""
        *earlier, newest = sorted(self.entries, key=lambda entry: entry.created_at)
        return {
            "UserStreaks": [self.written],
            "DailyActivity": [encode_item(day_attributes(day)) for day in self.days.values()],
            "RewardsLedger": [entry_item(each) for each in (*earlier, replace(newest, active=True))],
        }
