"""What users, servers and admins set: zone, pauses, rest days, boards, the end of a review (rules 2, 8, 25).

Each is an entry, but for the alias.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from adapters.book_store import BookStore
from adapters.engagement.account_store import (
    ATTEMPTS_MAX,
    AccountContended,
    AccountStore,
    ProjectionMoved,
    ReviewIndex,
)
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import (
    DATE,
    NEXT_PAGE,
    TEXT,
    closed_object,
    flag,
    list_of,
    one_of,
    text,
    text_or_null,
)
from ingest.web.paging import LIMIT_DEFAULT, LIMIT_MAX, cursor_refusal, days_in, integer
from rules.book.book import PauseRules
from rules.book.daily import REST_DAYS_MAX, WEEKDAYS, Weekday, weekday_names
from rules.days import UnknownZone, stamp
from rules.engagement.account import change_timezone, decide_settings
from rules.engagement.account_state import Account, Profile
from rules.engagement.board_settings import CHANGES_MAX, HIDDEN, REPLACED_KEPT, YES, groups_of, with_settings
from rules.engagement.rest_days import ChoiceTooSoon, chosen_anew
from rules.engagement.review import end_review
from rules.engagement.streak import YEAR, paused_dates_a_year
from rules.user_ids import user_id_problem
from rules.zone_names import find_zone

Span = tuple[date, date]
# Returns the profile with other settings, or the same to change nothing; and further actions for the
# transaction.
Change = Callable[[Profile], tuple[Profile, Sequence[dict[str, Any]]]]
AHEAD_MAX = timedelta(days=365)
PAUSED_AHEAD_MAX = 2 * AHEAD_MAX  # of a pause's last date
PAUSES_A_YEAR_MAX = 40
TIMEZONE = closed_object({"timezone": text(minLength=1, maxLength=64)})
PAUSE = closed_object(
    {
        "first": text("not before the user's today", pattern=DATE),
        "last": text("the book's pauses.dates_max is the most dates of a pause", pattern=DATE),
    }
)
REST_DAYS = closed_object(
    {
        "rest_days": list_of(one_of(WEEKDAYS), maxItems=REST_DAYS_MAX)
        | {"description": "the book's daily.rest_days_chosen is the most of them; none: no rest days"}
    }
)
REST_DAYS_VIEW = closed_object(
    {
        "user_id": TEXT,
        "rest_days": list_of(one_of(WEEKDAYS)),
        "from": text_or_null("the first date on which they count; null: nothing was ever chosen"),
    }
)
SPAN = closed_object({"first": TEXT, "last": TEXT})
PAUSES_VIEW = closed_object({"user_id": TEXT, "pauses": list_of(SPAN)})
_ZONE_AT = closed_object({"at": TEXT, "timezone": TEXT})
TIMEZONE_VIEW = closed_object(
    {
        "user_id": TEXT,
        "timezone": text("the zone in force"),
        "recent_tz_changes": list_of(_ZONE_AT),
        "observed_zones": list_of(_ZONE_AT),
        "under_review": flag("true: redemptions wait"),
    }
)
REVIEW = closed_object(
    {
        "user_id": TEXT,
        "under_review": flag("true: redemptions wait"),
        "evidence": list_of(TEXT),
        "released_at?": text_or_null(),
    }
)
REVIEW_LIST = closed_object(
    {
        "accounts": list_of(
            closed_object({"user_id": TEXT, "since": text_or_null(), "evidence": list_of(TEXT)})
        ),
        "cursor": NEXT_PAGE,
    }
)


def change_profile(
    accounts: AccountStore,
    cache: EngagementCache,
    read: Callable[[], Account],
    now: datetime,
    change: Change,
) -> Profile:
    """Change the settings of an account, in one transaction; returns the profile. Raises AccountContended.

    read: returns the account, with nothing pending.
    """
    user_id = ""
    for _ in pauses(ATTEMPTS_MAX):
        account = read()
        user_id = account.profile.user_id
        changed, further_actions = change(account.profile)
        decision = accounts.decision_of(account, partial(decide_settings, changed=changed, now=now))
        if not decision.is_change:
            return decision.profile
        try:
            if decision.entries:
                accounts.commit_at_once(decision, also=further_actions)
            else:
                accounts.commit(decision)
        except (HeadMoved, ProjectionMoved):
            continue
        cache.write_through([decision.profile])
        return decision.profile
    raise AccountContended(user_id)


@dataclass(frozen=True, slots=True)
class Preferences:
    """Sets what a user has chosen."""

    accounts: AccountStore
    cache: EngagementCache
    books: BookStore  # how much may be paused

    def set_timezone(self, user_id: str, zone: str, now: datetime) -> Profile:
        """Set the user's zone; stored activity dates stay as they are."""
        return self._change(user_id, now, lambda profile: change_timezone(profile, zone, now))

    def set_alias(self, user_id: str, alias: str | None, now: datetime) -> Profile:
        """Set the name under which the user is on the boards; None: a pseudonym."""
        return self._change(user_id, now, lambda profile: replace(profile, alias=alias))

    def set_hidden(self, user_id: str, hidden: bool, now: datetime) -> Profile:
        """Take the user off all boards, or bring the user back; raises 409 changes_max for coming back."""
        values = {HIDDEN: YES if hidden else ""}
        return self._change(user_id, now, lambda profile: _with_board_settings(profile, values, now))

    def set_groups(self, user_id: str, groups: Mapping[str, str], now: datetime) -> Profile:
        """Set all groups that the user is in: attributes with their values. Raises 409 changes_max."""

        def change(profile: Profile) -> Profile:
            values = dict.fromkeys(groups_of(profile.board_settings), "") | dict(groups)
            return _with_board_settings(profile, values, now)

        return self._change(user_id, now, change)

    def release(self, user_id: str, now: datetime) -> Profile:
        """End a review (rule 8)."""
        return self._change(user_id, now, lambda profile: end_review(profile, now))

    def pause(self, user_id: str, first: date, last: date, now: datetime) -> tuple[Profile, bool]:
        """Pause the streak from `first` to `last`, both included.

        Returns the profile with all its pauses, and whether this one is new: the same dates again change
        nothing. Raises 422 if the pause is longer than one may be, or if `first` is before the user's today
        or newest active date, or more than a year ahead; 409 pauses_max for more pauses, or more paused dates
        in a year, than are allowed.
        """
        terms, is_new = self.books.books().at(now).book.pauses, True

        def add_pause(profile: Profile) -> Profile:
            nonlocal is_new
            local = profile.local_date(now)
            is_new = (first, last) not in profile.cover.pauses
            if not is_new:
                return profile
            pauses = self._pauses_with(profile, (first, last), local, terms)
            return replace(profile, cover=replace(profile.cover, pauses=tuple(sorted(pauses))))

        return self.accounts.reaching_back(self._change(user_id, now, add_pause), date.min), is_new

    def choose_rest_days(self, user_id: str, weekdays: Sequence[Weekday], now: datetime) -> Profile:
        """Set the user's own rest days, from the first date on that has begun nowhere on earth.

        The same again changes nothing. Raises 409 rest_days_not_offered if the book lets nobody choose; 422
        for more weekdays than it allows; 409 rest_days_kept within 28 days of the last choice.
        """
        most = self.books.books().at(now).book.daily.chosen_max
        if not most:
            raise ApiError(409, "rest_days_not_offered", "the book of rules lets nobody choose rest days")
        if len(set(weekdays)) > most:
            raise invalid_field("rest_days", f"has {len(set(weekdays))} weekdays; at most {most}")

        def choose(profile: Profile) -> Profile:
            try:
                rest = chosen_anew(profile.cover.rest, weekdays, now)
            except ChoiceTooSoon as error:
                again = stamp(error.again_at)
                reason = f"rest days were chosen less than 28 days ago; again at {again}"
                raise ApiError(409, "rest_days_kept", reason, {"again_at": again}) from None
            return replace(profile, cover=replace(profile.cover, rest=rest))

        return self._change(user_id, now, choose)

    @staticmethod
    def _pauses_with(profile: Profile, span: Span, local: date, terms: PauseRules) -> tuple[Span, ...]:
        first, last = span
        dates = (last - first).days + 1
        if terms.dates_max and dates > terms.dates_max:
            raise invalid_field("last", f"gives the pause {dates} dates; at most {terms.dates_max}")
        if not local <= first <= local + AHEAD_MAX:
            reason = "before today" if first < local else "more than a year ahead"
            raise invalid_field("first", f"is {reason}")
        if profile.streak and first < profile.streak.last:
            # An event from a zone further east can have tomorrow's date. The streak has passed the dates
            # before it, and a pause cannot change them any more.
            raise invalid_field("first", f"is before the newest active date, {profile.streak.last}")
        pauses = sorted((*profile.cover.pauses, span))
        near = [(begin, end) for begin, end in pauses if end > first - YEAR]
        if len(near) > PAUSES_A_YEAR_MAX:
            raise ApiError(409, "pauses_max", f"{PAUSES_A_YEAR_MAX} pauses have been taken already in a year")
        if (paused_dates := paused_dates_a_year(near)) > terms.dates_a_year:
            reason = f"{paused_dates} dates of a year would be paused; at most {terms.dates_a_year}"
            raise ApiError(409, "pauses_max", reason)
        return tuple(pauses)

    def _change(self, user_id: str, now: datetime, change: Callable[[Profile], Profile]) -> Profile:
        return change_profile(
            self.accounts,
            self.cache,
            lambda: self.accounts.finish_pending(user_id, now),
            now,
            lambda profile: (change(profile), ()),
        )


def _with_board_settings(profile: Profile, values: Mapping[str, str], now: datetime) -> Profile:
    settings = with_settings(profile.board_settings, values, now)
    if len(settings) > CHANGES_MAX and settings != profile.board_settings and not values.get(HIDDEN):
        # A result that is made late asks for each of them. Whoever wants to leave may do so at any time.
        days = REPLACED_KEPT.days
        raise ApiError(
            409, "changes_max", f"groups and switch have changed {CHANGES_MAX} times in {days} days"
        )
    return replace(profile, board_settings=settings)


def accounts_under_review(
    index: ReviewIndex, query: Mapping[str, str], is_erased: Callable[[str], bool]
) -> dict[str, Any]:
    """Return accounts under review, by user id, without those of the erased; raises 400.

    cursor: the user id to go on after, null at the end.
    """
    limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
    after = query.get("cursor") or ""
    if after and user_id_problem(after):
        raise cursor_refusal()
    rows, has_more = list[dict[str, Any]](), True
    while has_more and len(rows) < limit:
        items = index.waiting(after, limit)
        has_more = len(items) == limit
        after = items[-1]["user_id"] if has_more else ""
        rows += [item for item in items if not is_erased(item["user_id"])]
    has_more, rows = has_more or len(rows) > limit, rows[:limit]
    accounts = [
        {
            "user_id": row["user_id"],
            "since": row.get("review_since"),
            "evidence": list(row.get("review_evidence") or ()),
        }
        for row in rows
    ]
    return {"accounts": accounts, "cursor": rows[-1]["user_id"] if has_more else None}


def review_view(profile: Profile) -> dict[str, Any]:
    """Return whether an account is under review, and why."""
    return {
        "user_id": profile.user_id,
        "under_review": profile.tz_review,
        "evidence": list(profile.review_evidence),
        "released_at": profile.released_at or None,
    }


def known_zone(name: str, field: str) -> str:
    """Return the name of a zone as it is stored; raises 422, with its field, if there is no such zone."""
    try:
        return find_zone(name)
    except UnknownZone as error:
        raise invalid_field(field, str(error)) from None


def timezone_view(profile: Profile) -> dict[str, Any]:
    """Return the contract's answer to a new zone."""
    return {
        "user_id": profile.user_id,
        "timezone": profile.zone,
        "recent_tz_changes": [{"at": at, "timezone": to} for at, to in profile.tz_changes],
        "observed_zones": [{"at": at, "timezone": to} for at, to in profile.zones_seen],
        "under_review": profile.tz_review,
    }


def pause_span(body: Mapping[str, Any], now: datetime) -> tuple[date, date]:
    """Return the first and the last date of the pause that a body asks for.

    Raises 422 if the last date is before the first, or too far ahead.
    """
    first, last = days_in(body, now.date() + PAUSED_AHEAD_MAX, "first", "last")
    if first is None or last is None or not first <= last:
        raise invalid_field("last", "is before first")
    return first, last


def pauses_view(profile: Profile) -> dict[str, Any]:
    """Return the contract's answer to a new pause."""
    return {"user_id": profile.user_id, "pauses": spans_view(profile.cover.pauses)}


def rest_days_view(profile: Profile) -> dict[str, Any]:
    """Return the contract's answer to a choice of rest days."""
    return {"user_id": profile.user_id, **(newest_choice(profile) or {"rest_days": [], "from": None})}


def newest_choice(profile: Profile) -> dict[str, Any] | None:
    """Return the user's newest choice of rest days; None if none was made."""
    if not profile.cover.rest.chosen:
        return None
    since, weekdays = profile.cover.rest.chosen[-1]
    return {"rest_days": weekday_names(weekdays), "from": since.isoformat()}


def spans_view(spans: Sequence[Span]) -> list[dict[str, str]]:
    """Return spans as answers show them."""
    return [{"first": str(since), "last": str(until)} for since, until in spans]
