"""Times of a device whose clock is wrong (rule 16)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.engagement.claims import IdempotencyClaim, claimed_event, derived_fields
from ingest.engagement.event_body import RefusedIfNew, RequestContext, event_of
from ingest.web.caller import Caller
from rules.days import parse_moment, stamp
from rules.engagement.events import (
    NO_SKEW,
    STEADY,
    Event,
    InputRefused,
    corrected_time,
    from_item,
    skew_of,
    to_item,
)
from rules.engagement.offline import OfflineProof, Stretch
from tests.support.books import KnownBooks

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ZONES = ("Z", "+00:00", "-11:00", "+05:45", "+14:00")
SKEWS = st.timedeltas(-26 * HOUR, 26 * HOUR)


def written(at: datetime, offset: str) -> str:
    """An instant as a device of some zone writes it."""
    if offset == "Z":
        return at.replace(tzinfo=None).isoformat() + "Z"
    return at.astimezone(datetime.fromisoformat(f"2000-01-01T00:00{offset}").tzinfo).isoformat()


def arrived(body: dict[str, str], skew: timedelta, now: datetime = NOW) -> Event:
    """The event of a body from a device whose clock is ahead by `skew`."""
    clock = skew_of(parse_moment(written(now + skew, "Z")), now)
    return event_of(body, RequestContext(Caller("u", False), {}, now, "api", KnownBooks().books(), clock))


def said(at: datetime, offset: str = "Z") -> dict[str, str]:
    return {"idempotency_key": "k", "event_type": "CHECK_IN", "occurred_at": written(at, offset)}


@given(st.timedeltas(timedelta(), 71 * HOUR), SKEWS, st.sampled_from(ZONES))
def test_an_event_of_a_wrong_clock_has_its_true_date(ago: timedelta, skew: timedelta, offset: str) -> None:
    true = (NOW - ago).replace(microsecond=0)
    skew = timedelta(seconds=round(skew.total_seconds()))
    is_steady = abs(skew) <= STEADY
    seen = arrived(said(true + skew, offset), skew)
    right = true + skew if is_steady else true
    assert parse_moment(seen.occurred_at).utc == right
    local = (
        right if offset == "Z" else right.astimezone(datetime.fromisoformat(written(right, offset)).tzinfo)
    )
    assert seen.activity_date == local.date()
    assert seen.event_id.startswith(f"{right:%Y-%m-%dT%H:%M:%S}")
    assert seen.device_time == (None if is_steady else written(true + skew, offset))
    assert from_item(to_item(seen)) == seen


@pytest.mark.parametrize("code_and_true", [("in_the_future", HOUR), ("backfill_forbidden", -73 * HOUR)])
def test_a_corrected_time_has_the_limits_of_any_other(code_and_true: tuple[str, timedelta]) -> None:
    code, true = code_and_true
    with pytest.raises(InputRefused) as refused:
        arrived(said(NOW + true + 5 * HOUR), 5 * HOUR)
    assert (refused.value.code, refused.value.field) == (code, "occurred_at")


def test_a_time_that_no_clock_can_show_is_refused() -> None:
    with pytest.raises(ValueError, match="by a right clock"):
        corrected_time("9999-12-31T23:00:00Z", 5 * HOUR)


@given(SKEWS, SKEWS)
def test_a_later_attempt_is_the_event_of_the_first(first: timedelta, second: timedelta) -> None:
    """The clock was put right, or wrong, between two attempts to send one event."""
    first, second = (timedelta(seconds=round(each.total_seconds())) for each in (first, second))
    body = said(NOW - 80 * HOUR + 30 * HOUR + max(timedelta(), first))
    try:
        won = arrived(body, first)
    except InputRefused:
        return
    claim = IdempotencyClaim("u", "k", "h", won.event_id, won.created_at, derived_fields(won))
    later = NOW + HOUR
    clock = skew_of(parse_moment(written(later + second, "Z")), later)
    try:
        again = event_of(
            body, RequestContext(Caller("u", True), {}, later, "api", KnownBooks().books(), clock)
        )
    except InputRefused as refused:
        again = refused.event  # type: ignore[attr-defined]
    assert claimed_event(again, claim) == won


def test_a_claim_without_a_date_is_named_by_what_it_lacks() -> None:
    event = arrived(said(NOW), timedelta())
    claim = IdempotencyClaim("u", "k", "h", event.event_id, event.created_at, {"zone": "UTC"})
    with pytest.raises(KeyError, match="activity_date"):
        claimed_event(event, claim)


def test_a_later_attempt_knows_since_when_the_device_was_offline() -> None:
    """The first attempt won the key and died; the second comes without a receipt, and is refused by now."""
    since = NOW - 100 * HOUR
    proof = OfflineProof(Stretch("0" * 16, since, since, NOW, NOW))
    sailor = RequestContext(Caller("u", False), {}, NOW, "api", KnownBooks().books(), proof=proof)
    body = said(NOW - 90 * HOUR)
    won = event_of(body, sailor)
    assert won.offline_since == stamp(since)
    claim = IdempotencyClaim("u", "k", "h", won.event_id, won.created_at, derived_fields(won))
    with pytest.raises(RefusedIfNew) as refused:
        event_of(body, replace(sailor, now=NOW + HOUR, proof=None))
    assert claimed_event(refused.value.event, claim) == won


def test_a_server_needs_no_receipt_and_a_fresh_event_has_no_use_for_one() -> None:
    refused = OfflineProof(InputRefused("receipt_refused", "receipt", "is forged"))
    books = KnownBooks().books()
    server, user = (
        RequestContext(Caller("u", is_server), {}, NOW, "api", books, proof=refused)
        for is_server in (True, False)
    )
    assert event_of(said(NOW - 90 * HOUR), server).offline_since is None
    assert event_of(said(NOW - 70 * HOUR), user).offline_since is None
    with pytest.raises(RefusedIfNew, match="is forged"):
        event_of(said(NOW - 90 * HOUR), user)


@given(st.floats(0, 13.9), SKEWS, st.sampled_from(ZONES))
def test_whatever_the_clock_a_fortnight_offline_counts_on_its_true_dates(
    days: float, skew: timedelta, offset: str
) -> None:
    left = NOW - 14 * 24 * HOUR
    true = (NOW - days * 24 * HOUR).replace(microsecond=0)
    skew = timedelta(seconds=round(skew.total_seconds()))
    clock = skew_of(parse_moment(written(NOW + skew, "Z")), NOW)
    proof = OfflineProof(Stretch("0" * 16, left, left, NOW, NOW))
    door = RequestContext(Caller("u", False), {}, NOW, "api", KnownBooks().books(), clock, proof)
    found = event_of(said(true + skew, offset), door)
    off = timedelta() if abs(skew) > STEADY else skew
    assert parse_moment(found.occurred_at).utc == true + off
    assert (
        found.activity_date == event_of(said(true + off, offset), replace(door, skew=NO_SKEW)).activity_date
    )
    assert (found.offline_since is not None) == (true + off < NOW - 72 * HOUR)
