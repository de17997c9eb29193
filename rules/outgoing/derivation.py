"""The notices of a change of a profile, a lead or a question, or of time (docs/rules.md, rule 18).

Each function is a fold: it takes the state, which says what was notified so far, and returns the new notices
and the state after them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from rules.book.rewards import Redemption
from rules.days import DAY, stamp, start_of, unstamp
from rules.engagement.account_state import Profile, date_at
from rules.engagement.ledger import debt_of, entry_id
from rules.engagement.streak import Cover, Streak, lapse_date, shown_streak
from rules.leads.feature_items import FeatureItem
from rules.outgoing.notices import Notice, NoticeType
from rules.questions.questions import Question, QuestionStatus

ProfileView = dict[str, Any]
POINT_FIELDS = ("total_bestie_points", "balance", "debt")
AT_RISK = timedelta(hours=6)  # this long before a streak lapses streak.at_risk is sent, once


@dataclass(frozen=True, slots=True)
class HoldState:
    """A hold that is in the profile."""

    hold_id: str
    points: int
    reward_id: str
    until: str
    is_over: bool = False  # whether its end has been notified


@dataclass(frozen=True, slots=True)
class LostStreak:
    """A streak whose loss was notified: its last active date, and how long it was."""

    last: date
    length: int


@dataclass(frozen=True, slots=True)
class UserNoticeState:
    """The state that a user's notifications have reported so far."""

    version: int = 0  # of the profile
    number: int = 0  # of the newest notification
    as_of: str = ""  # a stamp, the latest instant that was looked at
    shown: ProfileView = field(default_factory=dict)  # the profile as it was last sent
    lost: LostStreak | None = None  # the last loss that was notified, until a late event overturns it
    warned: str = ""  # the lapse for which streak.at_risk was sent
    holds: tuple[HoldState, ...] = ()
    redeemed: str = ""  # place of the newest redemption of a reward that was notified
    changes_at: str = ""  # a stamp, when time alone changes what is shown; "": never
    # achievements to looked_at: of the last look at the user's achievements (achievement_notices.py)
    # name -> instant of those that the user had
    achievements: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] | None = None  # name -> form of those that the book had; None: there was no look
    book: int = 0  # the newest version of the book; no later look may use an older one
    looked_at: str = ""  # a stamp


@dataclass(frozen=True, slots=True)
class ItemNoticeState:
    """The state that a lead's or a question's notifications have reported so far."""

    version: int = 0  # of its item; of a question 1
    number: int = 0
    as_of: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


def notices_of_profile(
    state: UserNoticeState, profile: Profile, at: datetime
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices of a profile in order, and the state after them.

    at: an instant; one before state.as_of counts as that. At the first look at a profile that is not new, and
    if only its past has changed, profile.changed alone is sent of it (rule 20).
    """
    as_of = max(state.as_of, stamp(at))
    after = profile_view(profile, unstamp(as_of))
    before = state.shown or (profile_view(Profile(profile.user_id), at) if profile.version == 1 else None)
    lost, warned = state.lost, state.warned
    is_past = profile.backfilled == profile.version > state.version  # what happened long ago is no news
    changed = Notice(NoticeType.PROFILE_CHANGED, {"profile": after})
    if before is None or is_past:
        notices = [changed] if before != after else []
    else:
        streak_notices, lost = _streak_notices(before, after, profile, state.lost)
        is_changed = _without_points(before) != _without_points(after)
        notices = streak_notices or ([changed] if is_changed else [])
        notices = [*notices, *_points_notices(before, after)]
    if is_at_risk(after, as_of) and warned != after["lapses_at"]:
        warned = after["lapses_at"]
        notices.append(Notice(NoticeType.STREAK_AT_RISK, {"lapses_at": warned, "profile": after}))
    holds, lapsed = _lapsed_holds(state.holds, profile, as_of)
    notices += [Notice(NoticeType.HOLD_EXPIRED, {**hold, "profile": after}) for hold in lapsed]
    later = next_change(profile, unstamp(as_of))
    is_new = not state.shown and profile.version == 1
    asked = None if is_past else {} if is_new else state.asked
    number, version = state.number + len(notices), max(state.version, profile.version)
    changes_at = stamp(later) if later else ""
    new_state = replace(state, shown=after, lost=lost, warned=warned, holds=holds, asked=asked)
    return notices, replace(new_state, version=version, number=number, as_of=as_of, changes_at=changes_at)


def notices_of_redemption(
    state: UserNoticeState, redemption: Redemption
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notice of a redeemed reward, or none if it has been sent. Redemptions come in order."""
    if redemption.created_at <= state.redeemed:
        return [], state
    fields = {
        "redemption": entry_id(redemption.created_at),
        "reward_id": redemption.reward_id,
        **({"title": redemption.title} if redemption.title else {}),
        "brand": redemption.brand,
        "price_points": redemption.price_points,
        "profile": state.shown,
    }
    as_of = max(state.as_of, redemption.created_at)
    after = replace(state, number=state.number + 1, as_of=as_of, redeemed=redemption.created_at)
    return [Notice(NoticeType.REWARD_REDEEMED, fields)], after


def is_at_risk(shown: ProfileView, as_of: str) -> bool:
    """Return whether a streak lapses within six hours."""
    lapse = shown["lapses_at"]
    return bool(lapse) and stamp(unstamp(lapse) - AT_RISK) <= as_of < lapse


def due_at(state: UserNoticeState) -> datetime | None:
    """Return when time alone will next give a notice; None: it will not."""
    times = [hold.until for hold in state.holds if not hold.is_over]
    lapse = state.shown.get("lapses_at")
    if lapse and state.warned != lapse:
        times.append(stamp(unstamp(lapse) - AT_RISK))
    if state.changes_at:
        times.append(state.changes_at)
    return unstamp(min(times)) if times else None


def run_reaches(run: Streak, cover: Cover, day: date) -> bool:
    """Return whether a run goes back to a date or further: the later dates alone cannot make it that long."""
    later_days = ((day + number * DAY) for number in range(1, (run.last - day).days + 1))
    spent = set(run.spent)
    longest = sum(later not in spent and not cover.is_neutral(later) for later in later_days)
    return run.length > longest


def _streak_notices(
    before: ProfileView, after: ProfileView, profile: Profile, lost: LostStreak | None
) -> tuple[list[Notice], LostStreak | None]:
    """Return the notices of the streak, and the loss that may still be overturned."""
    had, has, run = before["current_streak"], after["current_streak"], profile.streak
    notices: list[Notice] = []
    last = date.fromisoformat(before["last_activity_date"]) if had else date.min
    if had and not (has and run and run_reaches(run, profile.cover, last)):
        shown = {**before, "current_streak": 0, "lapses_at": None} if has else after
        is_reversed = (after["last_activity_date"] or "") < before["last_activity_date"]
        about = {"lost_streak": had, "reason": "reversed" if is_reversed else "missed", "profile": shown}
        notices.append(Notice(NoticeType.STREAK_LOST, about))
        lost, had = LostStreak(last, had), 0
    if has and run and lost and run_reaches(run, profile.cover, lost.last):
        about = {"lost_streak": lost.length, "current_streak": has, "profile": after}
        return [*notices, Notice(NoticeType.STREAK_CORRECTED, about)], None
    if has > had:
        about = {"from": had, "current_streak": has, "profile": after}
        notices.append(Notice(NoticeType.STREAK_EXTENDED, about))
    return notices, lost


def _points_notices(before: ProfileView, after: ProfileView) -> Iterator[Notice]:
    if any(before[name] != after[name] for name in POINT_FIELDS):
        change = after["balance"] - before["balance"]
        earned = after["total_bestie_points"] - before["total_bestie_points"]
        about = {"change": change, "earned": earned, "profile": after}
        yield Notice(NoticeType.POINTS_CHANGED, about)


def _lapsed_holds(
    before: tuple[HoldState, ...], profile: Profile, as_of: str
) -> tuple[tuple[HoldState, ...], list[dict[str, Any]]]:
    """Return the profile's holds, and views of those that have lapsed since.

    A hold that the profile no longer has was captured or released, unless its deadline was over by then.
    """
    by_id = {hold.hold_id: hold for hold in before}
    current = tuple(
        by_id.get(hold.hold_id) or HoldState(hold.hold_id, hold.points, hold.reward_id, hold.until)
        for hold in profile.holds
    )
    ids = {hold.hold_id for hold in current}
    lapsed = [hold for hold in current if not hold.is_over and hold.until <= as_of]
    gone = [hold for hold in before if hold.hold_id not in ids]
    lapsed += [hold for hold in gone if not hold.is_over and hold.until <= profile.updated_at]
    after = tuple(replace(hold, is_over=hold.is_over or hold.until <= as_of) for hold in current)
    return after, [_hold_view(hold) for hold in lapsed]


def _hold_view(hold: HoldState) -> dict[str, Any]:
    return {"hold_id": hold.hold_id, "points": hold.points, "reward_id": hold.reward_id, "until": hold.until}


def _without_points(shown: ProfileView) -> ProfileView:
    return {name: value for name, value in shown.items() if name not in POINT_FIELDS}


def notices_of_lead(
    state: ItemNoticeState, item: FeatureItem, organization_id: str, at: str
) -> tuple[list[Notice], ItemNoticeState]:
    """Return the notices of a lead's item, and the state after them. An older item gives none.

    at: a stamp, when the item was written. Memory is not sent, because it is people's own words.
    """
    shown = {
        "organization_id": organization_id,
        "merged_into": item.merged_into,
        "features": {name: _number(value) for name, value in sorted(item.features.items())},
    }
    if item.version <= state.version or shown == state.shown:
        return [], state
    after = replace(
        state, version=item.version, number=state.number + 1, as_of=max(state.as_of, at), shown=shown
    )
    return [Notice(NoticeType.LEAD_UPDATED, {**shown, "computed_at": item.computed_at})], after


def notices_of_question(state: ItemNoticeState, question: Question) -> tuple[list[Notice], ItemNoticeState]:
    """Return the one notice of a question that takes no more answers; none if it has been sent."""
    if state.version or question.status not in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED):
        return [], state
    closed_at = question.closed_at or question.closes_at
    about = {
        "agent_id": question.agent_id,
        "status": question.status.value,
        "category": question.category,
        "required_responses": question.required_responses,
        "current_responses": question.current_responses,
        "created_at": question.created_at,
        "closed_at": closed_at,
    }
    return [Notice(NoticeType.QUESTION_CLOSED, about)], ItemNoticeState(1, state.number + 1, closed_at, about)


def profile_view(profile: Profile, at: datetime) -> ProfileView:
    """Return what a notification shows of a user at an instant.

    It is what `GET /v1/users/{user_id}` shows, less what a clock alone decides.
    lapses_at: a stamp, while there is a streak that can lapse. Whether the streak is at risk today follows
    from that and from last_activity_date; the receiver knows its own clock.
    """
    streak = shown_streak(profile.streak, profile.cover, date_at(profile, at))
    return {
        "user_id": profile.user_id,
        "current_streak": streak.current,
        "longest_streak": streak.longest,
        "last_activity_date": streak.last.isoformat() if streak.last else None,
        "timezone": profile.zone,
        "total_bestie_points": profile.total_points,
        "balance": profile.balance,
        "debt": debt_of(profile.balance),
        "freezes_available": streak.freezes_available,
        "active_days": streak.active_days,
        "lapses_at": lapses_at(profile) if streak.current else None,
    }


def lapses_at(profile: Profile) -> str | None:
    """Return the instant from which the streak shows 0 if nothing more happens; None without a streak."""
    if profile.streak is None:
        return None
    return stamp(start_of(lapse_date(profile.streak, profile.cover), profile.zone))


def next_change(profile: Profile, at: datetime) -> datetime | None:
    """Return when time alone will next change what is shown; None: it will not.

    Example: last active on the 1st, one freeze. At the end of the 2nd it is used, at that of the 3rd the
    streak lapses.
    """
    day = date_at(profile, at)
    seen = shown_streak(profile.streak, profile.cover, day)
    if profile.streak is None or not seen.current:
        return None
    last = lapse_date(profile.streak, profile.cover)
    while day < last:
        day += DAY
        later = shown_streak(profile.streak, profile.cover, day)
        if (later.current, later.freezes_available) != (seen.current, seen.freezes_available):
            break
    return start_of(day, profile.zone)


def _number(shown: Any) -> Any:
    """Return a feature as JSON has it."""
    return float(shown) if isinstance(shown, Decimal) else shown
