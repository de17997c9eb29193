"""Attacks on rules 12 and 13 where they meet: what was tried, and what broke once."""

from datetime import timedelta

from rules.days import stamp
from tests.integration import test_rerate
from tests.integration.test_rerate import DAY, Bureau
from tests.support.site import ADMIN, PRODUCERS

bureau = test_rerate.bureau
HOUR = timedelta(hours=1)


def of_weeks(bureau: Bureau, points: int = 10, most: int = 15) -> None:
    """A book whose lessons have a cap over a week."""
    book = bureau.book()
    book["event_types"]["LESSON_COMPLETED"] = {"points": points, "cap": {"points": most, "per": "week"}}
    bureau.publish_past(book)


def true_balance(bureau: Bureau, at: object) -> int:
    told = bureau.ask("GET", f"/balance?as_of={stamp(at).replace('+', '%2B')}")  # type: ignore[arg-type]
    assert told[0] == 200, told
    return int(told[1]["true_balance"])


def test_what_was_true_has_what_other_events_earn_in_the_place_of_a_reversed_one(bureau: Bureau) -> None:
    of_weeks(bureau)
    bureau.now += 2 * DAY  # a Monday
    first = bureau.earn_one()
    bureau.now += DAY
    bureau.earn_one()
    bureau.now += DAY
    between = bureau.now
    bureau.now += HOUR
    bureau.reverse(first)
    assert bureau.told()[0] == 10, "the second event has its 10 now"
    assert true_balance(bureau, bureau.now) == 10
    assert true_balance(bureau, between) == 10


def test_what_was_true_has_what_a_version_of_the_past_gives(bureau: Bureau) -> None:
    bureau.earn()
    before = bureau.now
    bureau.now += 2 * DAY
    bureau.earn()
    between = bureau.now + DAY
    bureau.now += 2 * DAY
    bureau.publish_past(bureau.book(points=15, expiry={"after_days": 3}))
    bureau.rate()
    assert bureau.told()[0] == 15, "what the first one earned is gone"
    assert [true_balance(bureau, at) for at in (bureau.now, between, before)] == [15, 30, 15]


def test_an_event_whose_points_are_held_is_reversed_and_the_hold_served_as_far_as_it_goes(
    bureau: Bureau,
) -> None:
    event = bureau.earn_one()
    bureau.hold(10)
    bureau.reverse(event)
    assert bureau.told() == (0, 0, 0)
    bureau.end("capture", 0)
    assert bureau.spent == []
    bureau.check()


def test_any_words_are_a_reason_and_what_is_no_text_is_none(bureau: Bureau) -> None:
    for number, reason in enumerate(("Grüße ✓" * 28, "\U0001f600" * 200, 'a"b\\c\x7f\u2028')):
        event = bureau.earn_one()
        status, told = bureau.reverse(event, f"k{number}", reason=reason)
        assert (status, told["reason"]) == (201, reason)
        assert bureau.reverse(event, f"k{number}", reason=reason)[0] == 201
        assert len(reason.encode()) <= 1024, "the lake's column"
    event, before = bureau.earn_one(), bureau.told()
    for reason in ("a\nb", "a\x1fb", "a\x00", " \t", "\u3000", "x" * 201, "x\n", "\ud800"):
        assert bureau.reverse(event, reason=reason)[0] in (400, 422)
    assert bureau.told() == before


def test_a_stranger_reads_nothing_of_somebody_else_and_only_who_is_trusted_takes_back(bureau: Bureau) -> None:
    event = bureau.earn_one()
    body = {"event_id": event, "reason": "x", "idempotency_key": "k"}
    readable = ("rewards", "redemptions", "achievements", "streaks", "balance", "ledger", "streaks/x/explain")
    for group in ((), (PRODUCERS,), ("streakline/fulfilment/acme",), ("streakline/agents",)):
        for path in readable:
            assert bureau.api.call("stranger", "GET", f"{bureau.path}/{path}", None, *group)[0] == 403, path
        for who in (bureau.user, "stranger"):
            assert bureau.api.call(who, "POST", f"{bureau.path}/clawbacks", body, *group)[0] == 403
    assert bureau.api.call("op", "POST", f"{bureau.path}/clawbacks", body, ADMIN)[0] == 201


def test_what_was_true_at_noon_has_what_a_version_of_the_past_gives_for_the_morning(bureau: Bureau) -> None:
    bureau.earn()
    morning = bureau.now + HOUR
    bureau.now += 3 * HOUR
    bureau.earn()
    noon = bureau.now + HOUR
    bureau.now += DAY
    bureau.publish_past(bureau.book(points=15, cap=25))
    assert [true_balance(bureau, at) for at in (bureau.now, noon, morning)] == [20, 20, 10], "not yet rated"
    bureau.rate()
    assert [true_balance(bureau, at) for at in (bureau.now, noon, morning)] == [25, 25, 15]
    assert true_balance(bureau, morning - 2 * HOUR) == 0
    bureau.now += HOUR
    bureau.publish_past(bureau.book(points=1))
    assert [true_balance(bureau, at) for at in (bureau.now, noon, morning)] == [25, 25, 15], "not yet rated"
