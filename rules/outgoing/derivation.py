"""Which notifications follow from a change of a profile, a lead or a question, or from time, and what they
show (docs/rules.md, rule 18).

Each function is a fold: it gets the state, which says what was notified so far, and returns the notices
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
    is_over: bool = False  # its end has been notified


@dataclass(frozen=True, slots=True)
class LostStreak:
    """A streak whose loss was notified: its last active date, and how long it was."""

    last: date
    length: int


@dataclass(frozen=True, slots=True)
class UserNoticeState:
    """What a user's notifications say so far."""

    version: int = 0  # of the profile
    number: int = 0  # of the newest notification
    as_of: str = ""  # a stamp, the latest instant that was looked at
    shown: ProfileView = field(default_factory=dict)
    lost: LostStreak | None = None  # until it is overturned
    warned: str = ""  # the lapse for which streak.at_risk was sent
    holds: tuple[HoldState, ...] = ()
    redeemed: str = ""  # place of the newest redemption of a reward that was notified
    changes_at: str = ""  # a stamp, when time alone changes what is shown; "": never
    # Instants of those that were notified, by name
    achievements: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] | None = None  # the form of each that somebody has looked for; None: nobody has
    book: int = 0  # the newest version that was known then
    looked_at: str = ""  # a stamp, when that was. No later look goes by an older book.


@dataclass(frozen=True, slots=True)
class ItemNoticeState:
    """What a lead's or a question's notifications say so far."""

    version: int = 0  # of its item; of a question 1
    number: int = 0
    as_of: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


def notices_of_profile(
    state: UserNoticeState, profile: Profile, at: datetime
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices of a profile in order, and the state after them.

    at: an instant; one before state.as_of counts as that. A profile of which nothing was sent yet, and which
    is not new, is sent as a whole: profile.changed; so is one that the past alone has changed (rule 20).
    """
    as_of = max(state.as_of, stamp(at))
    after = profile_view(profile, unstamp(as_of))
    before = state.shown or (profile_view(Profile(profile.user_id), at) if profile.version == 1 else None)
    lost, warned = state.lost, state.warned
    is_past = profile.backfilled == profile.version > state.version  # what happened long ago is no news
    notices, lost = _streak_notices(before, after, profile, state.lost) if before else ([], lost)
    if before is None or is_past:
        notices = [Notice(NoticeType.PROFILE_CHANGED, {"profile": after})] if before != after else []
    else:
        if not notices and _without_points(before) != _without_points(after):
            notices.append(Notice(NoticeType.PROFILE_CHANGED, {"profile": after}))
        notices += _points_notices(before, after)
    if is_at_risk(after, as_of) and warned != after["lapses_at"]:
        warned = after["lapses_at"]
        notices.append(Notice(NoticeType.STREAK_AT_RISK, {"lapses_at": warned, "profile": after}))
    holds, lapsed = _lapsed_holds(state.holds, profile, as_of)
    notices += [Notice(NoticeType.HOLD_EXPIRED, {**each, "profile": after}) for each in lapsed]
    later = next_change(profile, unstamp(as_of))
    is_new = not state.shown and profile.version == 1
    asked = None if is_past else {} if is_new else state.asked
    number, version = state.number + len(notices), max(state.version, profile.version)
    seen = replace(state, shown=after, lost=lost, warned=warned, holds=holds, asked=asked)
    changes_at = stamp(later) if later else ""
    return notices, replace(seen, version=version, number=number, as_of=as_of, changes_at=changes_at)


def notices_of_redemption(
    state: UserNoticeState, redemption: Redemption
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notice of a redeemed reward: none if it has been sent. They come in order."""
    if redemption.created_at <= state.redeemed:
        return [], state
    about = {
        "redemption": entry_id(redemption.created_at),
        "reward_id": redemption.reward_id,
        **({"title": redemption.title} if redemption.title else {}),
        "brand": redemption.brand,
        "price_points": redemption.price_points,
        "profile": state.shown,
    }
    as_of = max(state.as_of, redemption.created_at)
    after = replace(state, number=state.number + 1, as_of=as_of, redeemed=redemption.created_at)
    return [Notice(NoticeType.REWARD_REDEEMED, about)], after


def is_at_risk(shown: ProfileView, as_of: str) -> bool:
    """Whether a streak lapses within six hours."""
    lapse = shown["lapses_at"]
    return bool(lapse) and stamp(unstamp(lapse) - AT_RISK) <= as_of < lapse


def due_at(state: UserNoticeState) -> datetime | None:
    """Return when time alone will next give a notice; None: it will not."""
    times = [each.until for each in state.holds if not each.is_over]
    lapse = state.shown.get("lapses_at")
    if lapse and state.warned != lapse:
        times.append(stamp(unstamp(lapse) - AT_RISK))
    if state.changes_at:
        times.append(state.changes_at)
    return unstamp(min(times)) if times else None


def run_reaches(run: Streak, cover: Cover, day: date) -> bool:
    """Whether a run goes back to a date or further: it is longer than the dates after it could make it."""
    between = ((day + number * DAY) for number in range(1, (run.last - day).days + 1))
    spent = set(run.spent)
    possible = sum(each not in spent and not cover.is_neutral(each) for each in between)
    return run.length > possible


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
    """Return the profile's holds, and those that have lapsed since.

    A hold that the profile has no more was captured or released if that was before its deadline.
    """
    by_id = {each.hold_id: each for each in before}
    current = tuple(
        by_id.get(each.hold_id) or HoldState(each.hold_id, each.points, each.reward_id, each.until)
        for each in profile.holds
    )
    ids = {each.hold_id for each in current}
    lapsed = [each for each in current if not each.is_over and each.until <= as_of]
    for name, each in by_id.items():
        if name not in ids and not each.is_over and each.until <= profile.updated_at:
            lapsed.append(each)
    after = tuple(replace(each, is_over=each.is_over or each.until <= as_of) for each in current)
    return after, [_hold_view(each) for each in lapsed]


def _hold_view(hold: HoldState) -> dict[str, Any]:
    return {"hold_id": hold.hold_id, "points": hold.points, "reward_id": hold.reward_id, "until": hold.until}


def _without_points(shown: ProfileView) -> ProfileView:
    return {name: value for name, value in shown.items() if name not in POINT_FIELDS}


def notices_of_lead(
    state: ItemNoticeState, item: FeatureItem, organization_id: str, at: str
) -> tuple[list[Notice], ItemNoticeState]:
    """Return the notices of a lead's item, and the state after them. An older item gives none.

    at: a stamp, when the item was written. What is remembered of a lead is people's own words, and not sent.
    """
    shown = {
        "organization_id": organization_id,
        "merged_into": item.merged_into,
        "features": {name: _number(each) for name, each in sorted(item.features.items())},
    }
    if item.version <= state.version or shown == state.shown:
        return [], state
    after = replace(
        state, version=item.version, number=state.number + 1, as_of=max(state.as_of, at), shown=shown
    )
    return [Notice(NoticeType.LEAD_UPDATED, {**shown, "computed_at": item.computed_at})], after


def notices_of_question(state: ItemNoticeState, question: Question) -> tuple[list[Notice], ItemNoticeState]:
    """Return the one notice of a question, when it takes no answers any more: none if it has been sent."""
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
