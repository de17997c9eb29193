"""Which notices follow from a profile (docs/rules.md, rule 18).

Each function is a fold. It takes a state, which has all that was notified so far, and returns the new notices
and the state after them. A profile gives notices when it changes, and when time passes: a streak lapses, a
hold ends. From time to time a user's achievements are looked at (rule 15). In this order: profiles,
redemptions, achievements, and what things of parts have.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

from rules.book.board_rules import BoardRule
from rules.book.book import Books
from rules.book.daily import NO_REPAIRS, DailyTerms, RepairRules
from rules.book.levels import Level, standing_of
from rules.book.rewards import Redemption
from rules.days import DAY, stamp, unstamp
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import definition_digest
from rules.engagement.friends import Tie, TieState
from rules.engagement.goals import DeclaredAchievement
from rules.engagement.leagues import Outcome, closes_at, division_after, is_known, rules_of
from rules.engagement.ledger import debt_of, entry_id
from rules.engagement.periods import Period, period_named
from rules.engagement.repairs import BrokenRun, NotRepairable, is_broken, offered_repair, repair_view
from rules.engagement.streak import Cover, Streak, lapse_date, shown_streak
from rules.outgoing.notices import FRIEND, FRIEND_TYPES, Notice, NoticeType

ProfileView = dict[str, Any]
POINT_FIELDS = ("total_bestie_points", "balance", "debt")
COMES_LATE = timedelta(days=1)  # so late a stream's record may come
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
    """The state that a user's notifications have reported so far.

    The four fields from `achievements` on are of the last look at the user's achievements.
    """

    version: int = 0  # the profile's
    number: int = 0  # the newest notification's
    as_of: str = ""  # a stamp: the latest instant that the notices take into account
    shown: ProfileView = field(default_factory=dict)  # the profile as it was last sent
    lost: LostStreak | None = None  # the last loss that was notified, until a late event overturns it
    warned_lapse: str = ""  # a stamp: the lapse for which streak.at_risk was sent; "": none
    holds: tuple[HoldState, ...] = ()
    newest_redemption: str = ""  # the created_at of the newest one that was notified
    newest_tie: str = ""  # the place in its table's stream of the newest change of a tie that was looked at
    changes_at: str = ""  # a stamp: when time alone changes the view of the profile; "": never
    # The user's achievements by name, each with its instant
    achievements: Mapping[str, str] = field(default_factory=dict)
    # A digest of each achievement of the book at the last look; None: nobody has looked. It has no names:
    # exports show it, and achievements may be secret.
    seen_forms: frozenset[str] | None = None
    book: int = 0  # the newest version of the book; no later look may use an older one
    looked_at: str = ""  # a stamp
    league_week: str = ""  # the newest week whose league was notified


def notices_of_profile(
    state: UserNoticeState,
    profile: Profile,
    at: datetime,
    levels: Sequence[Level] = (),
    repairs: Callable[[], RepairRules] = lambda: NO_REPAIRS,
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices of a profile in order, and the state after them.

    levels: of the book in force. A change of level is one of the points alone: both levels are of these, so a
    newer book gives no notices. repairs: returns what this book says of them; is called for a loss.
    at: now. The notices are as of now, or as of state.as_of if that is later. At the first look at an older
    profile, and for a change of the past alone, profile.changed tells of all changes (rule 20). A streak at
    risk and expired holds have their own notices always.
    """
    as_of = max(state.as_of, stamp(at))
    view = profile_view(profile, unstamp(as_of))
    is_new = not state.shown and profile.version == 1
    before = profile_view(Profile(profile.user_id), at) if is_new else state.shown
    is_past_alone = profile.backfilled == profile.version > state.version
    lost, warned_lapse, seen_forms = state.lost, state.warned_lapse, state.seen_forms
    notices: list[Notice] = []
    if before and not is_past_alone:
        notices, lost = _change_notices(before, view, profile, lost)
        notices = [_with_repair(notice, profile, unstamp(as_of), repairs) for notice in notices]
        notices += _level_notices(before, view, levels)
    elif before != view:
        notices = [Notice(NoticeType.PROFILE_CHANGED, {"profile": view})]
    if is_at_risk(view, as_of) and warned_lapse != view["lapses_at"]:
        warned_lapse = view["lapses_at"]
        notices.append(Notice(NoticeType.STREAK_AT_RISK, {"lapses_at": warned_lapse, "profile": view}))
    holds, lapsed = _lapsed_holds(state.holds, profile, as_of)
    for hold in lapsed:
        data = {"hold_id": hold.hold_id, "points": hold.points, "reward_id": hold.reward_id}
        notices.append(Notice(NoticeType.HOLD_EXPIRED, {**data, "until": hold.until, "profile": view}))
    if is_past_alone:
        seen_forms = None  # the achievements that an imported history brings are no news
    elif is_new:
        seen_forms = frozenset()  # all that a new user achieves is news
    changes_at = next_change(profile, unstamp(as_of))
    return notices, replace(
        state,
        version=max(state.version, profile.version),
        number=state.number + len(notices),
        as_of=as_of,
        shown=view,
        lost=lost,
        warned_lapse=warned_lapse,
        holds=holds,
        changes_at=stamp(changes_at) if changes_at else "",
        seen_forms=seen_forms,
    )


def _change_notices(
    before: ProfileView, after: ProfileView, profile: Profile, lost: LostStreak | None
) -> tuple[list[Notice], LostStreak | None]:
    """Return the notices of what differs between two views, and the loss that a late event may overturn."""
    notices, lost = _streak_notices(before, after, profile, lost)
    if not notices and _without_points(before) != _without_points(after):
        notices.append(Notice(NoticeType.PROFILE_CHANGED, {"profile": after}))
    if any(before[name] != after[name] for name in POINT_FIELDS):
        change, earned = (after[name] - before[name] for name in ("balance", "total_bestie_points"))
        data = {"change": change, "earned": earned, "profile": after}
        notices.append(Notice(NoticeType.POINTS_CHANGED, data))
    return notices, lost


def _level_notices(before: ProfileView, after: ProfileView, levels: Sequence[Level]) -> list[Notice]:
    """Return the notice that the points ever earned are on another level than before, if they are."""
    earned = [view["total_bestie_points"] for view in (before, after)]
    level_before, level = (standing_of(levels, points).level for points in earned)
    if level == level_before:
        return []
    data = {
        "level": level.name if level else None,
        "title": level.title if level else "",
        "level_before": level_before.name if level_before else None,
        "direction": "up" if earned[1] > earned[0] else "down",
        "profile": after,
    }
    return [Notice(NoticeType.LEVEL_CHANGED, data)]


def _without_points(view: ProfileView) -> ProfileView:
    return {name: value for name, value in view.items() if name not in POINT_FIELDS}


def _streak_notices(
    before: ProfileView, after: ProfileView, profile: Profile, lost: LostStreak | None
) -> tuple[list[Notice], LostStreak | None]:
    """Return the notices of the streak, and the loss that a late event may still overturn.

    Several events may lie between the two views. So a streak may be lost, and a new one begin.
    """
    length_before, length, run = before["current_streak"], after["current_streak"], profile.streak
    notices: list[Notice] = []
    last = date.fromisoformat(before["last_activity_date"]) if length_before else date.min
    if length_before and not (length and run and run_reaches(run, profile.cover, last)):
        view_after_loss = {**before, "current_streak": 0, "lapses_at": None} if length else after
        is_reversed = (after["last_activity_date"] or "") < before["last_activity_date"]
        data = {
            "lost_streak": length_before,
            "reason": "reversed" if is_reversed else "missed",
            "profile": view_after_loss,
        }
        notices.append(Notice(NoticeType.STREAK_LOST, data))
        lost, length_before = LostStreak(last, length_before), 0
    if length and run and lost and run_reaches(run, profile.cover, lost.last):
        data = {"lost_streak": lost.length, "current_streak": length, "profile": after}
        return [*notices, Notice(NoticeType.STREAK_CORRECTED, data)], None
    if length > length_before:
        data = {"from": length_before, "current_streak": length, "profile": after}
        notices.append(Notice(NoticeType.STREAK_EXTENDED, data))
    return notices, lost


def _with_repair(notice: Notice, profile: Profile, at: datetime, rules: Callable[[], RepairRules]) -> Notice:
    """Return a notice that a date was missed with what the user may repair. All others stay as they are."""
    if notice.type != NoticeType.STREAK_LOST or notice.data["reason"] != "missed":
        return notice
    today, streak = date_at(profile, at), profile.streak
    with suppress(NotRepairable):
        # Who has begun anew meanwhile reads it in the profile: it follows from more than this one.
        run = BrokenRun(streak) if streak and is_broken(streak, profile.cover, today) else None
        offer = offered_repair(run, profile.cover, profile.repairs, rules(), today)
        return Notice(notice.type, {**notice.data, "repair": repair_view(offer)})
    return notice


def run_reaches(run: Streak, cover: Cover, day: date) -> bool:
    """Return whether a run contains a date, or began before it.

    That is so if the run is longer than the number of later dates that can be active.
    """
    later_days = (day + number * DAY for number in range(1, (run.last - day).days + 1))
    spent = set(run.spent)
    length_max = sum(later not in spent and not cover.is_neutral(later) for later in later_days)
    return run.length > length_max


def is_at_risk(shown: ProfileView, as_of: str) -> bool:
    """Return whether a streak lapses within six hours."""
    lapse = shown["lapses_at"]
    return bool(lapse) and stamp(unstamp(lapse) - AT_RISK) <= as_of < lapse


def _lapsed_holds(
    before: tuple[HoldState, ...], profile: Profile, as_of: str
) -> tuple[tuple[HoldState, ...], list[HoldState]]:
    """Return the states of the profile's holds, and the holds that have lapsed since the states `before`.

    A hold that the profile no longer has lapsed if its deadline was over when the profile was written. If
    not, it was captured or released.
    """
    by_id = {hold.hold_id: hold for hold in before}
    current = tuple(
        by_id.get(hold.hold_id) or HoldState(hold.hold_id, hold.points, hold.reward_id, hold.until)
        for hold in profile.holds
    )
    current_ids = {hold.hold_id for hold in current}
    removed = [hold for hold in before if hold.hold_id not in current_ids]
    lapsed = [
        *(hold for hold in current if not hold.is_over and hold.until <= as_of),
        *(hold for hold in removed if not hold.is_over and hold.until <= profile.updated_at),
    ]
    return tuple(replace(hold, is_over=hold.is_over or hold.until <= as_of) for hold in current), lapsed


def profile_view(profile: Profile, at: datetime) -> ProfileView:
    """Return the profile that notifications contain, as of an instant.

    It has the fields of `GET /v1/users/{user_id}`, without those that change with the clock alone. Its
    lapses_at is a stamp, or None without a streak that can lapse. From lapses_at, last_activity_date and its
    own clock, a receiver knows whether the streak is at risk.
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
    return stamp(profile.start_of(lapse_date(profile.streak, profile.cover)))


def next_change(profile: Profile, at: datetime) -> datetime | None:
    """Return when time alone will next change the view of a profile; None: it will not.

    Example: the user was last active on the 1st and has one freeze. At the end of the 2nd, the freeze is
    used. At the end of the 3rd, the streak lapses.
    """
    day = date_at(profile, at)
    current = shown_streak(profile.streak, profile.cover, day)
    if profile.streak is None or not current.current:
        return None
    last = lapse_date(profile.streak, profile.cover)
    while day < last:
        day += DAY
        later = shown_streak(profile.streak, profile.cover, day)
        if (later.current, later.freezes_available) != (current.current, current.freezes_available):
            break
    return profile.start_of(day)


def due_at(state: UserNoticeState) -> datetime | None:
    """Return when time alone will next give a notice; None: it will not."""
    times = [hold.until for hold in state.holds if not hold.is_over]
    lapse = state.shown.get("lapses_at")
    if lapse and state.warned_lapse != lapse:
        times.append(stamp(unstamp(lapse) - AT_RISK))
    if state.changes_at:
        times.append(state.changes_at)
    return unstamp(min(times)) if times else None


def notices_of_redemption(
    state: UserNoticeState, redemption: Redemption, profile: ProfileView
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notice of a redeemed reward, or none if it has been sent. Redemptions come in order.

    profile: what the notice shows of it; of a user who has none any more there is no notice.
    """
    if not profile or redemption.created_at <= state.newest_redemption:
        return [], state
    fields = {
        "redemption": entry_id(redemption.created_at),
        "reward_id": redemption.reward_id,
        **({"title": redemption.title} if redemption.title else {}),
        "brand": redemption.brand,
        "price_points": redemption.price_points,
        "profile": profile,
    }
    as_of = max(state.as_of, redemption.created_at)
    after = replace(state, number=state.number + 1, as_of=as_of, newest_redemption=redemption.created_at)
    return [Notice(NoticeType.REWARD_REDEEMED, fields)], after


@dataclass(frozen=True, slots=True)
class LeagueResult:
    """What became of a user in a week's league, as the user's membership has it."""

    user_id: str
    outcome: Outcome


def notices_of_league(
    state: UserNoticeState, outcome: Outcome, terms: DailyTerms, profile: ProfileView, now: datetime
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notice that a user's league has closed, or none if it was notified.

    profile: what the notice shows of it; of a user who has none any more there is no notice. A membership
    keeps its outcome for ever. So an endpoint that is new hears only of a week whose cohorts may have been
    closed just now.
    """
    week = period_named(outcome.week)
    rules = rules_of(week, terms)
    is_news = outcome.week > state.league_week and is_known(week, terms, now - COMES_LATE)
    if not profile or rules is None or not is_news:
        return [], state
    closed_at = stamp(closes_at(week, terms))
    fields = {
        "week": week.name,
        "first": week.first.isoformat(),
        "last": week.last.isoformat(),
        "division": outcome.division,
        "rank": outcome.rank,
        "points": outcome.points,
        "zone": outcome.zone.value,
        "members": outcome.members,
        "division_after": rules.divisions[
            division_after(outcome.zone, rules.divisions.index(outcome.division))
        ],
        "closed_at": closed_at,
        "profile": profile,
    }
    as_of = max(state.as_of, closed_at)
    after = replace(state, number=state.number + 1, as_of=as_of, league_week=week.name)
    return [Notice(NoticeType.LEAGUE_CLOSED, fields)], after


@dataclass(frozen=True, slots=True)
class TieChange:
    """A change of what a user has with another one (rule 26)."""

    tie: Tie
    at: str  # a stamp: the second of the change
    place: str  # in the stream of its table: a text that grows with each change of the user's ties

    def notices(self, state: UserNoticeState, _now: datetime) -> tuple[list[Notice], UserNoticeState]:
        """Return the notice of the change, or none. Changes come in order, maybe twice.

        Who asks or blocks is told nothing. Nobody is told who has ended a pair, or why: a block reads like
        any other end.
        """
        if self.place <= state.newest_tie:
            return [], state
        tie, state = self.tie, replace(state, newest_tie=self.place)
        kind = NOTICE_OF_TIE.get(TieState.ENDED if tie.pair_id and tie.ended_at else tie.state)
        if kind is None:
            return [], state
        instant = FRIEND_TYPES[kind]
        after = replace(state, number=state.number + 1, as_of=max(state.as_of, self.at))
        return [Notice(kind, {FRIEND: tie.friend_id, instant: getattr(tie, instant)})], after


NOTICE_OF_TIE = {
    TieState.REQUEST: NoticeType.FRIEND_REQUESTED,
    TieState.FRIEND: NoticeType.FRIEND_ADDED,
    TieState.ENDED: NoticeType.FRIEND_ENDED,
}


@dataclass(frozen=True, slots=True)
class OfferedAchievement:
    """An achievement of the book in force."""

    title: str
    form: str  # a digest of its name and definition
    since: str  # a stamp: from then on, a version with this form was published and in force
    points: int = 0  # of its bonus; 0: none


def offered_achievements(
    declared: Mapping[str, DeclaredAchievement], books: Books, now: datetime
) -> dict[str, OfferedAchievement]:
    """Return the achievements of the book in force, by name."""
    newest_first = sorted(
        (version for version in books.versions if version.effective_at <= now),
        key=lambda version: (version.effective_at, version.number),
        reverse=True,
    )
    offered = {}
    for name, achievement in declared.items():
        since = now
        for version in newest_first:
            if version.book.achievements.get(name) != achievement.rule:
                break
            since = max(version.effective_at, version.published_at)
        form = definition_digest(name, achievement)
        rule = achievement.rule
        offered[name] = OfferedAchievement(rule.title, form, stamp(since), rule.points)
    return offered


def notices_of_achievements(
    state: UserNoticeState, offered: Mapping[str, OfferedAchievement], achieved: Mapping[str, str]
) -> tuple[list[Notice], UserNoticeState]:
    """Return the notices of a user's achievements, and the state after them.

    achieved: the user's achievements, all of them offered ones; by name, the stamp at which the user reached
    the achievement.

    An achievement is news if the user did not have it at the last look. If the book has got or changed it
    since that look, the user must also have reached it at or after `since`. Nothing is news at the first look
    (state.seen_forms is None), because the user may have had the achievements for long. Every other change is
    sent as `profile.changed`: an achievement that the user's history fulfils, that is withdrawn, or that a
    late event dates earlier.
    """
    achieved = dict(sorted(achieved.items()))
    seen = state.seen_forms
    news = [
        name
        for name in achieved
        if seen is not None
        and name not in state.achievements
        and (offered[name].form in seen or achieved[name] >= offered[name].since)
    ]
    fields = {"achievements": achieved, "profile": state.shown}
    notices = [
        Notice(
            NoticeType.ACHIEVEMENT_EARNED,
            {
                "achievement": name,
                "title": offered[name].title,
                "points": offered[name].points,
                "achieved_at": achieved[name],
                **fields,
            },
        )
        for name in sorted(news, key=lambda name: (achieved[name], name))
    ]
    if not notices and achieved != state.achievements:
        notices = [Notice(NoticeType.PROFILE_CHANGED, fields)]
    seen_forms = frozenset(achievement.form for achievement in offered.values())
    return notices, replace(
        state, number=state.number + len(notices), achievements=achieved, seen_forms=seen_forms
    )


def forget_achievements(state: UserNoticeState) -> tuple[list[Notice], UserNoticeState]:
    """Return no notices, and the state without what the last look has seen.

    It applies while no endpoint wants achievements. The next look is then like a first one: nothing is news.
    """
    return [], replace(state, achievements={}, seen_forms=None)


@dataclass(frozen=True, slots=True)
class ItemNoticeState:
    """The state that the notifications of a thing of a part have reported so far."""

    version: int = 0  # the item's; of what is notified once 1
    number: int = 0
    as_of: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThingChange:
    """A change of a thing of a part, which notifications may be about."""

    type: str  # of its notices
    # Returns the notices of the change at an instant, and the next state
    notices: Callable[[ItemNoticeState, datetime], tuple[list[Notice], ItemNoticeState]]


def notices_of_result(
    state: ItemNoticeState, rule: BoardRule, period: Period, users: int, final_at: datetime
) -> tuple[list[Notice], ItemNoticeState]:
    """Return the only notice of a board's final result; none if it was returned before.

    users: on the board, in all of its groups. The notice names nobody: whoever wants the rows asks for them.
    """
    if state.version:
        return [], state
    data = {
        "board": rule.name,
        "period": period.name,
        "first": period.first.isoformat(),
        "last": period.last.isoformat(),
        "group": rule.group or None,
        "users": users,
        "final_at": stamp(final_at),
    }
    return [Notice(NoticeType.BOARD_FINISHED, data)], ItemNoticeState(1, 1, stamp(final_at), data)
