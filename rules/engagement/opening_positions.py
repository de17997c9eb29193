"""Opening positions: a user's streak and points in another system, on a date (docs/rules.md, rule 20).

In this order: the position and its entries; the decision that gives it to an account; the reading of one from
a row of a file.
"""

import json
import re
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from rules.book.daily import REST_DAYS_MAX, Weekday
from rules.days import DAY, parse_moment, stamp
from rules.engagement.account import (
    bump_version,
    days_with_entries,
    freeze_drafts,
    journalled_freezes,
    profile_with_entries,
)
from rules.engagement.account_settings import setting_drafts
from rules.engagement.account_state import Account, Decision, NeedsHistory
from rules.engagement.events import LATE_MAX, NAMESPACE, InputRefused
from rules.engagement.ledger import Draft, EntryKind, FreezeNote, active_dates, append_drafts
from rules.engagement.lots import DATES_MAX
from rules.engagement.period_points import OPENING_TYPE
from rules.engagement.streak import Checkpoint, fold
from rules.user_ids import new_user_problem

LASTING_LOT = "lasting"  # the lot of points that never expire
# A phone may send events while its user moves. The position has those already. So active dates this near to
# its last date are no conflict.
MOVE_WINDOW = LATE_MAX + 2 * DAY
COLUMNS = (
    *("user_id", "as_of", "streak", "longest", "last_date", "active_days"),
    *("balance", "lots", "earned", "freezes", "achievements", "rest_days"),
)
# A lot that expires so long before `as_of` has expired wherever it is `as_of`.
GONE_BEFORE = 2 * DAY
FREEZES_MAX = 30
NUMBER_MAX = 10**12
NEVER = "never"
FIRST = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class OpeningPosition:
    """The state that a user brings along."""

    user_id: str
    as_of: date  # the date that it describes
    last_date: date | None = None
    streak: int = 0  # how long it was at `last_date`, 0 for one that had ended by then
    longest: int = 0  # with that streak
    active_days: int = 0  # with that streak
    # Points by the date on which they expire; None: never
    lots: Mapping[date | None, int] = field(default_factory=dict)
    freezes: int = 0  # unused ones
    earned: int = 0  # points ever earned, with those that are gone; 0: as many as `lots` have
    achievements: Mapping[str, str] = field(default_factory=dict)  # instants by name
    rest_days: tuple[Weekday, ...] = ()  # the user's own choice, from `as_of` on

    @property
    def balance(self) -> int:
        """All points that are brought along."""
        return sum(self.lots.values())

    @property
    def opening(self) -> Checkpoint:
        """The checkpoint that the fold begins with. Without an active date its length is 0: it is a mark."""
        if self.last_date is None:
            return Checkpoint(self.as_of, 0, 0, 0, 0)
        length = max(1, self.streak)
        longest = max(length, self.longest)
        return Checkpoint(self.last_date, length, longest, max(longest, self.active_days), 0)

    def drafts(self, paying: Collection[str] = ()) -> list[Draft]:
        """Return the entries that bring points and freezes into the ledger.

        paying: the achievements of the book that have points. For those that the position has, the other
        system has paid: a bonus of 0 points says so.
        """
        day, at = self.as_of.isoformat(), stamp(datetime.combine(self.as_of, time(), UTC))
        drafts: list[Draft] = []
        # What was earned and is gone is a lot that had expired by then, and its expiry.
        gone, gone_on = max(0, self.earned - self.balance), self.as_of - GONE_BEFORE
        lots = {gone_on: gone, **self.lots}
        for date_of_lot, points in sorted(lots.items(), key=lambda item: item[0] or date.max):
            if not points:
                continue
            expires_on = date_of_lot.isoformat() if date_of_lot else None
            # The id of a lot's entry is the same at each attempt.
            lot_id = uuid.uuid5(NAMESPACE, f"{self.user_id}\x00opening\x00{expires_on or LASTING_LOT}")
            draft = Draft(EntryKind.EARN, points, f"{at}#{lot_id}", OPENING_TYPE, day)
            drafts.append(replace(draft, is_passive=True, expires_on=expires_on))
        if gone:
            drafts.append(Draft(EntryKind.EXPIRE, -gone, expires_on=gone_on.isoformat()))
        granted = Draft(EntryKind.ADJUST, 0, freeze=FreezeNote.GRANTED, freeze_date=day)
        paid = [
            Draft(EntryKind.BONUS, 0, activity_date=day, reward_id=name)
            for name in sorted(self.achievements.keys() & set(paying))
        ]
        return [*drafts, *([granted] * self.freezes), *paid]


def has_position(account: Account, position: OpeningPosition) -> bool:
    """Whether an account has this position. Raises InputRefused if it has another one."""
    opening = account.profile.cover.opening
    if opening is None:
        return False
    if opening != position.opening:
        raise InputRefused("conflict", "user_id", f"has moved in with another position: {opening.text}")
    return True


def with_position(
    account: Account, position: OpeningPosition, now: datetime, paying: Collection[str] = ()
) -> Decision:
    """Return the decision that gives an account a position, as if it had preceded all events.

    paying: see OpeningPosition.drafts.

    account: with the day of `as_of`. Raises NeedsHistory. Raises InputRefused if the account has active dates
    from an imported history: the position would count them twice.
    """
    before = account.profile
    if account.history is None and (before.streak or account.pending):
        raise NeedsHistory(date.min)
    dates = {*(account.history.dates if account.history else ()), *active_dates(account.pending)}
    first = min(dates, default=date.max)
    if position.last_date and first < position.last_date - MOVE_WINDOW:
        reason = f"has a history here since {first}: a position would count it twice"
        raise InputRefused("conflict", "user_id", reason)
    # 1. Pending entries are counted first, as any writer does.
    days = days_with_entries(account.days, account.pending)
    repaired = profile_with_entries(before, account.pending)
    rest = repaired.cover.rest
    if position.rest_days:
        rest = rest.with_choice(position.as_of, position.rest_days)
    opened = replace(repaired, cover=replace(repaired.cover, opening=position.opening, rest=rest))
    # 2. The fold may spend freezes that the position brings. So its entries are tried first, for their cover.
    drafts = [*position.drafts(paying), *setting_drafts(repaired, opened)]
    trial = profile_with_entries(repaired, append_drafts(before.user_id, repaired.head, drafts, now))
    streak = fold(dates, trial.cover)
    # 3. Then the position's entries are written together with the freezes that the fold has spent or given
    # back.
    drafts += freeze_drafts(journalled_freezes(before, account.pending), streak)
    entries = append_drafts(before.user_id, repaired.head, drafts, now)
    days |= days_with_entries({**account.days, **days}, entries)
    changed = replace(profile_with_entries(repaired, entries), streak=streak)
    after = bump_version(before, changed, now)
    return Decision(account, repaired.head, entries, days, replace(after, backfilled=after.version))


def position_of(values: Mapping[str, Any], today: date) -> OpeningPosition:
    """Return the position in a row; raises InputRefused."""
    unknown = sorted(values.keys() - {*COLUMNS})
    if unknown:
        raise _field_refusal(unknown[0], "is no column of opening positions")
    user_id = values.get("user_id", "")
    if isinstance(user_id, (float, int)) and not isinstance(user_id, bool):
        user_id = str(user_id)
    if not isinstance(user_id, str):
        raise _field_refusal("user_id", f"is no text, but {json.dumps(user_id)[:40]}")
    if problem := new_user_problem(user_id):
        raise _field_refusal("user_id", problem)
    if "as_of" not in values:
        raise _field_refusal("as_of", "is missing: the date that the position is told of")
    as_of = _date(values["as_of"], "as_of", today + DAY)
    position = OpeningPosition(
        user_id=user_id,
        as_of=as_of,
        last_date=_date(values["last_date"], "last_date", as_of) if "last_date" in values else None,
        streak=_number(values, "streak"),
        longest=_number(values, "longest"),
        active_days=_number(values, "active_days"),
        lots=_lots(values, as_of),
        freezes=_number(values, "freezes"),
        earned=_number(values, "earned"),
        achievements=_achievements(values),
        rest_days=_rest_days(values),
    )
    _check_streak(position)
    if "earned" in values and position.earned < position.balance:
        raise _field_refusal("earned", f"is less than the balance, {position.balance}")
    if position.freezes > FREEZES_MAX:
        raise _field_refusal("freezes", f"are more than {FREEZES_MAX}")
    return position


def _check_streak(position: OpeningPosition) -> None:
    """Raise InputRefused if the app would show another streak than the row says."""
    if position.last_date is None:
        if position.streak or position.longest or position.active_days:
            raise _field_refusal("last_date", "is missing: the last date that counts for the streak")
        return
    if position.longest < position.streak:
        raise _field_refusal("longest", "is less than the streak")
    if position.active_days and position.active_days < position.longest:
        raise _field_refusal("active_days", "are fewer than the longest streak has")
    days = position.opening.active_days
    if position.last_date - timedelta(days=days - 1) < FIRST:
        raise _field_refusal("active_days" if position.active_days else "longest", "would begin before 1970")
    is_alive = position.as_of - position.last_date <= DAY
    if position.streak and not is_alive:
        raise _field_refusal(
            "last_date", "is too long ago for a streak: say the last date that counts or is covered"
        )
    if not position.streak and is_alive:
        raise _field_refusal("streak", "is 0, although last_date is not yet missed")


def _lots(values: Mapping[str, Any], as_of: date) -> dict[date | None, int]:
    points_by_expiry = _json_object(values, "lots")
    if points_by_expiry is None:
        balance = _number(values, "balance")
        return {None: balance} if balance else {}
    lots: dict[date | None, int] = {}
    for on, points in points_by_expiry.items():
        expiry = None if on == NEVER else _date(on, "lots", date.max)
        if expiry and expiry <= as_of:
            raise _field_refusal("lots", f"has points that had expired by as_of, on {on}")
        lots[expiry] = _number_value(points, "lots")
    if len(lots) > DATES_MAX:
        raise _field_refusal("lots", f"are more than {DATES_MAX}")
    if "balance" in values and _number(values, "balance") != sum(lots.values()):
        raise _field_refusal("balance", f"is not what the lots come to: {sum(lots.values())}")
    return lots


def _achievements(values: Mapping[str, Any]) -> dict[str, str]:
    instants = {}
    for name, at in (_json_object(values, "achievements") or {}).items():
        try:
            instants[name] = stamp(parse_moment(str(at)).utc)
        except ValueError as error:
            raise _field_refusal("achievements", f"has {name} at {at!r}: {error}") from None
    return instants


def _rest_days(values: Mapping[str, Any]) -> tuple[Weekday, ...]:
    names = values.get("rest_days") or []
    if isinstance(names, str):
        names = names.split()  # CSV has no lists
    if not isinstance(names, list) or len(names) > REST_DAYS_MAX:
        raise _field_refusal("rest_days", f"are not up to {REST_DAYS_MAX} weekdays")
    try:
        return tuple(sorted({Weekday.of(str(name)) for name in names}))
    except ValueError as error:
        raise _field_refusal("rest_days", f"{error}: write them as saturday sunday") from None


def _json_object(values: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return a field's object, or None. A text is parsed as JSON, because CSV has no objects."""
    value = values.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise _field_refusal(name, f"is no JSON: {error}") from None
    if value is not None and not isinstance(value, dict):
        raise _field_refusal(name, "is no JSON object")
    return value


def _number(values: Mapping[str, Any], name: str) -> int:
    return _number_value(values.get(name, 0), name)


def _number_value(value: Any, name: str) -> int:
    """Return a field's whole number from 0. A text of digits is taken, too, because CSV has no numbers."""
    if isinstance(value, str) and (digits := re.fullmatch(r"(\d{1,13})(\.0+)?", value, re.ASCII)):
        value = int(digits[1])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= NUMBER_MAX:
        raise _field_refusal(name, f"is no whole number from 0 to {NUMBER_MAX}, but {str(value)[:40]}")
    return value


def _date(value: Any, name: str, latest: date) -> date:
    try:
        day = date.fromisoformat(str(value))
    except ValueError:
        raise _field_refusal(name, "is no date such as 2026-03-01") from None
    if not FIRST <= day <= latest:
        raise _field_refusal(name, f"is not between {FIRST} and {latest}")
    return day


def _field_refusal(field: str, reason: str) -> InputRefused:
    return InputRefused("invalid_field", field, reason)
