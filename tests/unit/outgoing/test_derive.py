"""What is told of a user: folded, it is the profile; a loss is told once, and overturned where a date comes late."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.book.daily import RepairRules
from rules.days import stamp
from rules.engagement.account_state import Profile, date_at
from rules.engagement.ledger import Head
from rules.engagement.lots import Hold
from rules.engagement.streak import Cover, fold
from rules.outgoing.derivation import (
    AT_RISK,
    UserNoticeState,
    due_at,
    notices_of_profile,
    profile_view,
    run_reaches,
)
from rules.outgoing.notices import Notice, NoticeType, number_notices

START = datetime(2026, 3, 1, tzinfo=UTC)
FIRST = START.date()
DAY = timedelta(days=1)
MISSING = NoticeType.STREAK_LOST


class Customer:
    """A user's account, and a receiver that folds what it is told."""

    def __init__(self, zone: str = "UTC") -> None:
        self.profile, self.told = Profile("ann", chosen_zone=zone), UserNoticeState()
        self.dates: set[date] = set()
        self.known: dict[str, object] = profile_view(Profile("ann"), START)  # what is shown of a stranger
        self.heard: list[str] = []
        self.numbers: list[int] = []
        self.due: datetime | None = None

    def hear(self, at: datetime) -> list[Notice]:
        number = self.told.number
        found, self.told = notices_of_profile(self.told, self.profile, at)
        for each in number_notices("ann", number, stamp(at), found):
            self.known |= each.content["data"]["profile"]
            self.heard.append(each.notice.type)
            self.numbers.append(each.number)
        self.due = due_at(self.told)
        return found

    def wait(self, at: datetime) -> None:
        """Let time pass: whatever is due is told when it is due."""
        for _ in range(100):
            if self.due is None or self.due > at:
                return
            due = self.due
            self.hear(due)
            assert self.due is None or self.due > due, "what is due must be over then"
        raise AssertionError("it is due for ever")

    def change(self, at: datetime, **changes: object) -> list[Notice]:
        version = self.profile.version + 1
        self.profile = replace(self.profile, version=version, updated_at=stamp(at), **changes)  # type: ignore[arg-type]
        return self.hear(at)

    def act(self, at: datetime, *days: int) -> list[Notice]:
        self.dates |= {FIRST + day * DAY for day in days}
        return self.change(at, streak=fold(self.dates, self.profile.cover))

    def types(self) -> list[str]:
        return list(map(str, self.heard))


def noon(day: int) -> datetime:
    return START + day * DAY + timedelta(hours=12)


def midnight(day: int) -> datetime:
    return START + day * DAY


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["act", "late", "freeze", "pause", "points", "reverse", "zone", "hold", "nothing"]),
        st.integers(0, 6),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=25,
)


def play(customer: Customer, steps: list[tuple[str, int, int]]) -> datetime:
    at = noon(0)
    for number, (what, back, hours) in enumerate(steps):
        at += timedelta(hours=hours)
        customer.wait(at)
        today, cover = date_at(customer.profile, at), customer.profile.cover
        day = (today - FIRST).days
        if what in ("act", "late"):
            customer.act(at, max(0, day - (back if what == "late" else 0)))
        elif what == "reverse" and customer.dates:
            customer.dates.discard(sorted(customer.dates)[-1 - back % len(customer.dates)])
            customer.change(at, streak=fold(customer.dates, cover))
        elif what in ("freeze", "pause"):
            changed = (
                replace(cover, freezes=(*cover.freezes, (today, 1)))
                if what == "freeze"
                else replace(cover, pauses=(*cover.pauses, (today, today + back * DAY)))
            )
            customer.change(at, cover=changed, streak=fold(customer.dates, changed))
        elif what == "points":
            total, balance = customer.profile.total_points + back, customer.profile.balance + back - 3
            customer.change(at, total_points=total, head=Head(stamp(at), number, balance))
        elif what == "zone":
            customer.change(at, chosen_zone=("UTC", "Asia/Tokyo", "America/New_York")[back % 3])
        elif what == "hold":
            until = stamp(at + timedelta(hours=back))
            held = Hold(f"h{number}", 5, "mug", stamp(at), until)
            customer.change(at, holds=(*customer.profile.holds, held)[-2:])
        else:
            customer.hear(at)
    return at


@given(STEPS, st.integers(0, 72))
def test_whatever_happens_the_notifications_folded_are_the_profile(
    steps: list[tuple[str, int, int]], rest: int
) -> None:
    customer = Customer()
    at = play(customer, steps) + timedelta(hours=rest)
    customer.wait(at)
    if customer.profile.version:
        assert customer.known == profile_view(customer.profile, max(at, START))
    assert customer.numbers == list(range(1, len(customer.numbers) + 1))


@given(STEPS)
def test_what_was_told_is_not_told_again(steps: list[tuple[str, int, int]]) -> None:
    customer = Customer()
    at = play(customer, steps)
    if customer.profile.version:
        customer.hear(at)
    before = list(customer.heard)
    customer.hear(at)
    customer.hear(at - timedelta(hours=5))  # another clock
    assert customer.heard == before


@given(STEPS)
def test_a_correction_follows_a_loss_and_no_loss_follows_a_loss_without_a_streak_between(
    steps: list[tuple[str, int, int]],
) -> None:
    customer = Customer()
    play(customer, steps)
    lost = 0
    is_alive = False
    for kind in customer.heard:
        if kind is MISSING:
            assert is_alive
            is_alive, lost = False, lost + 1
        elif kind == NoticeType.STREAK_CORRECTED:
            assert lost
            is_alive, lost = True, 0
        elif kind == NoticeType.STREAK_EXTENDED:
            is_alive = True


@given(st.sets(st.integers(0, 20), min_size=1), st.sets(st.integers(0, 20), max_size=4), st.integers(0, 20))
def test_a_run_reaches_a_date_if_an_active_date_up_to_it_is_in_the_run(
    active: set[int], freezes: set[int], asked: int
) -> None:
    cover = Cover(freezes=tuple((FIRST + day * DAY, 1) for day in sorted(freezes)))
    run = fold([FIRST + day * DAY for day in active], cover)
    assert run is not None
    last, spent = max(active), {(day - FIRST).days for day in run.spent}
    first = last
    while first - 1 in active | spent:
        first -= 1
    first = min(day for day in active if day >= first)
    assert run_reaches(run, cover, FIRST + asked * DAY) == (first <= asked)


def test_six_hours_before_a_streak_lapses_its_app_is_told_once_then_that_it_is_lost() -> None:
    ann = Customer("America/New_York")
    ann.act(noon(0), 0)
    assert ann.due == datetime(2026, 3, 2, 18 + 5, tzinfo=UTC), "at six in the evening of the second date"
    ann.wait(midnight(10))
    assert ann.types() == ["streak.extended", "streak.at_risk", "streak.lost"]
    assert ann.told.as_of == stamp(datetime.combine(date(2026, 3, 3), time(5), UTC))
    assert ann.known["current_streak"] == 0
    assert timedelta(hours=6) == AT_RISK


def test_a_loss_says_what_can_be_repaired_and_a_repair_overturns_it() -> None:
    terms = RepairRules(price_points=200, within_days=3, dates_max=2, a_year=4)
    run, told = fold([FIRST], Cover()), UserNoticeState()
    profile = Profile("ann", 1, streak=run)
    _, told = notices_of_profile(told, profile, noon(0))
    (lost,), told = notices_of_profile(told, profile, midnight(2), repairs=lambda: terms)
    offer = {"until": "2026-03-05", "dates": ["2026-03-03"], "price_points": 200}
    assert lost.data["repair"] == offer | {"until": str(FIRST + 3 * DAY), "dates": [str(FIRST + DAY)]}
    repaired = replace(profile, version=2, cover=Cover(freezes=((FIRST + DAY, 1),)))
    ((corrected,), _) = notices_of_profile(told, repaired, noon(2), repairs=lambda: terms)
    assert corrected.type == "streak.corrected"
    _, told = notices_of_profile(UserNoticeState(), profile, noon(0))
    (lost,), _ = notices_of_profile(told, profile, midnight(2))
    assert "repair" not in lost.data


def test_a_loss_is_overturned_also_after_a_new_run_has_begun_and_only_once() -> None:
    ann = Customer()
    for day in (0, 1, 3):
        ann.act(noon(day), day)
    assert ann.types() == ["streak.extended", "streak.extended", "streak.lost", "streak.extended"]
    (corrected,) = ann.act(noon(3), 2)
    assert (corrected.type, corrected.data["current_streak"]) == ("streak.corrected", 4)
    assert [each.type for each in ann.act(noon(4), 4)] == ["streak.extended"]


def test_whoever_was_lost_before_anybody_told_it_is_told_of_first() -> None:
    ann = Customer()
    ann.act(noon(0), 0)
    lost, extended = ann.act(noon(5), 5)
    assert (lost.type, lost.data["lost_streak"], lost.data["reason"]) == ("streak.lost", 1, "missed")
    assert lost.data["profile"]["current_streak"] == 0
    assert (extended.type, extended.data["from"], extended.data["current_streak"]) == (
        "streak.extended",
        0,
        1,
    )


def test_a_freeze_that_time_uses_is_a_change_of_the_profile() -> None:
    ann = Customer()
    cover = Cover(freezes=((FIRST, 1),))
    ann.change(noon(0), cover=cover, streak=fold([FIRST], cover))
    ann.wait(midnight(2))
    assert ann.types() == ["streak.extended", "profile.changed"]
    assert ann.known["freezes_available"] == 0
    ann.wait(midnight(9))
    assert ann.types()[2:] == ["streak.at_risk", "streak.lost"]


def test_a_hold_that_lapses_is_told_and_one_that_is_captured_is_not() -> None:
    ann = Customer()
    held = [Hold(name, 5, "mug", stamp(noon(0)), stamp(noon(1))) for name in ("a", "b")]
    ann.change(noon(0), holds=tuple(held))
    ann.change(noon(0) + timedelta(hours=1), holds=(held[1],))  # a is captured
    ann.wait(noon(3))
    over = [each for each in ann.heard if each == NoticeType.HOLD_EXPIRED]
    assert len(over) == 1
    ann.change(noon(4), holds=())
    assert [each for each in ann.heard if each == NoticeType.HOLD_EXPIRED] == over


def test_what_the_past_alone_has_changed_is_no_news_and_is_told_as_a_whole() -> None:
    one = Customer()
    days = [FIRST - each * DAY for each in range(3)]
    streak = fold(days, Cover())
    one.change(START, streak=streak, total_points=50, backfilled=1)
    assert one.heard == [NoticeType.PROFILE_CHANGED]
    assert one.known["current_streak"] == 3
    assert one.told.seen_forms is None
    one.change(START + DAY, streak=fold([*days, FIRST + DAY], Cover()))
    assert one.heard[1:] != []
    assert NoticeType.PROFILE_CHANGED not in one.heard[1:]


def test_a_loss_that_nobody_was_told_of_is_never_corrected() -> None:
    """A streak lapses, and an import of old events is the first look since: the import alone is told."""
    one = Customer()
    one.act(noon(0), 0)
    one.dates.add(FIRST - 30 * DAY)
    one.change(noon(5), streak=fold(one.dates, Cover()), backfilled=2)
    assert one.types()[1:] == ["profile.changed"]
    one.act(noon(5), 1, 2, 3, 4, 5)  # late events bridge what was missed
    assert one.types()[2:] == ["streak.extended"]
