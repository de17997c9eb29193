"""Each event of a request is accepted, a duplicate, a conflict or rejected by itself."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from adapters.engagement.claims import IdempotencyClaim
from ingest.engagement import event_body
from ingest.engagement.acceptance import Acceptor, AcceptResult, AcceptStatus
from ingest.web.api import json_body
from ingest.web.caller import ApiError, Caller
from rules.book.book import Declarer
from tests.support.books import TYPES, KnownBooks
from tests.support.empty_stores import Claimed, Stores
from tests.support.http_requests import VALID, sent

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def accepted(bodies: list[Any], stores: Stores, caller: Caller = Caller("u", False)) -> list[AcceptResult]:  # noqa: B008
    door: Any = stores
    return Acceptor(door, door, door, KnownBooks()).accept(bodies, caller, NOW)


def test_one_bad_event_never_spoils_its_neighbours() -> None:
    stores = Stores()
    results = accepted([VALID, {"idempotency_key": "bad"}, 7, {**VALID, "idempotency_key": "l"}], stores)
    assert [each.status for each in results] == [
        AcceptStatus.ACCEPTED,
        AcceptStatus.REJECTED,
        AcceptStatus.REJECTED,
        AcceptStatus.ACCEPTED,
    ]
    assert [each.idempotency_key for each in results] == ["k", "bad", None, "l"]
    assert len(stores.stored) == 2


@pytest.mark.parametrize("size", [10, 450, 65_000])
def test_properties_are_stored_whole_however_long(size: int) -> None:
    sent = {"amount": "10.00", "note": "x" * size}
    accepted([{**VALID, "properties": sent}], stores := Stores())
    assert [json.loads(each.properties) for each in stores.stored] == [sent]


def test_one_key_twice_in_a_request_is_a_duplicate_or_a_conflict() -> None:
    results = accepted([VALID, VALID, {**VALID, "event_type": "APP_OPENED"}], stores := Stores())
    assert [each.status for each in results] == [
        AcceptStatus.ACCEPTED,
        AcceptStatus.DUPLICATE,
        AcceptStatus.CONFLICT,
    ]
    assert len(stores.stored) == 1


def test_a_bare_z_is_read_in_the_stored_zone_and_without_one_in_utc() -> None:
    late = {**VALID, "occurred_at": "2026-06-01T02:00:00Z"}
    for zone, day, read_in in (
        ("America/New_York", date(2026, 5, 31), "America/New_York"),
        (None, date(2026, 6, 1), "UTC"),
    ):
        accepted([late], stores := Stores(zone))
        assert (stores.stored[0].activity_date, stores.stored[0].zone) == (day, read_in)


@pytest.mark.parametrize("nothing", ["", " ", None])
def test_a_zone_that_says_nothing_is_like_none(nothing: str | None) -> None:
    late = {**VALID, "occurred_at": "2026-06-01T02:00:00Z", "timezone": nothing}
    (result,) = accepted([late], stores := Stores("America/New_York"))
    assert result.status is AcceptStatus.ACCEPTED
    assert stores.stored[0].activity_date == date(2026, 5, 31)


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("GMT+03:00", "+03:00"),
        ("posix/Europe/Moscow", "Europe/Moscow"),
        ("Etc/GMT-3", "Etc/GMT-3"),
    ],
)
def test_a_zone_as_devices_spell_it_decides_the_date(said: str, zone: str) -> None:
    for occurred_at in ("2026-05-31T22:30:00Z", "2026-05-31T15:30:00-07:00"):
        (result,) = accepted(
            [{**VALID, "occurred_at": occurred_at, "timezone": said}], stores := Stores("America/New_York")
        )
        assert result.status is AcceptStatus.ACCEPTED
        stored = stores.stored[0]
        assert (stored.activity_date, stored.zone, stored.timezone) == (date(2026, 6, 1), zone, zone)


@pytest.mark.parametrize(
    "said",
    ["SystemV/AST4ADT", "+15:00", "\u00e9", "x" * 200],
)
def test_in_place_of_a_zone_that_nobody_knows_the_offset_of_the_moment_counts(said: str) -> None:
    body = {**VALID, "occurred_at": "2026-05-31T23:30:00-08:00", "timezone": said}
    (result,) = accepted([body], stores := Stores("Asia/Tokyo"))
    assert result.status is AcceptStatus.ACCEPTED
    stored = stores.stored[0]
    assert (stored.activity_date, stored.zone, stored.timezone) == (date(2026, 5, 31), "-08:00", "-08:00")
    for written in ("2026-06-01T07:30:00Z", "2026-06-01T07:30:00-00:00"):
        (refused,) = accepted([{**body, "occurred_at": written}], stores := Stores("Asia/Tokyo"))
        assert refused.error is not None
        assert (refused.error["code"], refused.error["field"]) == ("invalid_field", "timezone")
        assert "occurred_at has no offset" in refused.error["message"]
        assert stores.stored == []


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"user_id": "v"}, "forbidden", "user_id"),
        ({"event_type": "QUESTION_ANSWERED"}, "forbidden", "event_type"),
        ({"occurred_at": "2026-05-01T12:00:00Z"}, "backfill_forbidden", "occurred_at"),
        ({"occurred_at": "2026-06-02T12:00:00Z"}, "in_the_future", "occurred_at"),
        ({"occurred_at": "2026-06-01"}, "invalid_field", "occurred_at"),
        ({"occurred_at": "0001-01-01T00:00:00Z", "timezone": "-07:00"}, "invalid_field", "occurred_at"),
        ({"timezone": "Mars/Olympus"}, "invalid_field", "timezone"),
        ({"properties": {"a": "x" * 70_000}}, "invalid_field", "properties"),
    ],
)
def test_a_refused_event_is_told_by_code_and_field_and_not_stored(
    change: dict[str, Any], code: str, field: str
) -> None:
    (result,) = accepted([{**VALID, **change}], stores := Stores())
    assert result.status is AcceptStatus.REJECTED
    assert result.error is not None
    assert (result.error["code"], result.error["field"]) == (code, field)
    assert stores.stored == []


SERVERS = [Caller("admin", is_admin=True), Caller("shop", is_admin=False, is_producer=True)]


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_sends_events_of_any_user_and_late_ones(server: Caller) -> None:
    body = {**VALID, "user_id": "v", "occurred_at": "2016-06-01T12:00:00Z"}
    (result,) = accepted([body], stores := Stores(), server)
    assert result.status is AcceptStatus.ACCEPTED
    assert stores.stored[0].user_id == "v"


@pytest.mark.parametrize(
    "event_type", [name for name, each in TYPES.items() if each.declared_by is Declarer.SERVER]
)
def test_what_a_server_declares_is_refused_from_a_user_with_the_reason(event_type: str) -> None:
    body = {**VALID, "event_type": event_type}
    (refused,) = accepted([body], stores := Stores())
    assert refused.error is not None
    assert (refused.error["code"], refused.error["field"]) == ("forbidden", "event_type")
    assert event_type in refused.error["message"]
    assert "streakline/producers" in refused.error["message"]
    assert stores.stored == []
    for server in SERVERS:
        assert accepted([body], Stores(), server)[0].status is AcceptStatus.ACCEPTED


def test_a_key_that_another_request_has_claimed_in_the_same_instant_is_not_accepted_twice() -> None:
    held: dict[tuple[str, str], IdempotencyClaim] = {}

    class Shared(Stores):
        def claim(self, claims: Sequence[IdempotencyClaim], now: datetime) -> Claimed:
            won = {each.key for each in claims if each.key not in held}
            return {each.key: held.setdefault(each.key, each) for each in claims}, won

    both = [accepted([VALID], Shared())[0].status for _ in range(2)]
    assert both == [AcceptStatus.ACCEPTED, AcceptStatus.DUPLICATE]


def test_a_body_that_json_body_takes_is_not_too_deep_for_what_comes_after_it() -> None:
    limit = sys.getrecursionlimit()
    for depth in range(limit - 150, limit, 10):
        nested = "[" * depth + "]" * depth
        text = json.dumps({"events": [VALID]}).replace("}]}", f', "properties": {{"a": {nested}}}}}]}}')
        try:
            body = json_body(sent(text), event_body.EVENTS, batch="events")
        except ApiError:
            break
        try:
            accepted(body["events"], Stores())
        except RecursionError:
            pytest.fail(f"json_body takes {depth} levels, accept raises RecursionError")
