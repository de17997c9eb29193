"""What the HTTP doors make of callers, bodies, parameters and paths: an answer, or a refusal by name."""

import base64
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest.engagement.users_api
import ingest.operations_api
from adapters.engagement.claims import IdempotencyClaim
from adapters.engagement.engagement_cache import EngagementCache
from ingest import openapi
from ingest.engagement import engagement_schemas
from ingest.engagement.accept import Acceptor, AcceptResult, AcceptStatus
from ingest.engagement.history import Histories, created_at, entry_id
from ingest.engagement.leaderboards import check_board, with_ranks
from ingest.engagement.preferences import Preferences
from ingest.web.caller import ApiError, Caller, caller_of
from ingest.web.http import BODY_BYTES_MAX, json_body
from ingest.web.json_schema import Schema
from ingest.web.paging import (
    FIRST_DATE,
    LAST_DATE,
    LIMIT_MAX,
    PageSpan,
    day_of,
    integer,
    moment_of,
    page,
    span_of,
)
from ingest.web.rate_limit import RateLimit
from ingest.web.validate import NESTING_MAX, first_problem
from rules.days import stamp, unstamp
from rules.engagement.account_state import Account, Profile
from rules.engagement.points import SERVER_WRITTEN
from rules.engagement.streaks import fold
from rules.questions.answer_events import EVENT_TYPE
from tests.support.template import resources

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def with_claims(**claims: Any) -> dict[str, Any]:
    named = {name.replace("groups", "cognito:groups"): value for name, value in claims.items()}
    return {"requestContext": {"authorizer": {"jwt": {"claims": named}}}}


@pytest.mark.parametrize(
    ("claims", "is_admin"),
    [
        ({}, False),
        ({"groups": ["streakline/admin"]}, True),
        ({"groups": ["other", "streakline/admin"]}, True),
        ({"groups": "[other streakline/admin]"}, True),
        ({"groups": "[streakline/admin]"}, True),
        ({"groups": "other,streakline/admin"}, True),
        ({"scope": "openid streakline/admin"}, True),
        ({"groups": []}, False),
        ({"groups": None}, False),
        ({"groups": "[streakline/administrator]"}, False),
        ({"groups": "[my-streakline/admin]"}, False),
        ({"scope": "streakline/admin.read"}, False),
        ({"scope": "streakline admin"}, False),
        ({"username": "streakline/admin"}, False),
    ],
)
def test_the_admin_is_known_by_group_or_scope(claims: dict[str, Any], is_admin: bool) -> None:
    assert caller_of(with_claims(sub="u", **claims)) == Caller("u", is_admin)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"requestContext": {}},
        {"requestContext": {"authorizer": {}}},
        {"requestContext": {"authorizer": {"jwt": {}}}},
        with_claims(),
        with_claims(sub=""),
        with_claims(scope="streakline/admin"),
    ],
)
def test_without_a_verified_sub_nobody_is_calling(event: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        caller_of(event)
    assert (refused.value.status, refused.value.code) == (401, "unauthorized")


def test_a_caller_reaches_their_own_data_and_an_admin_all() -> None:
    Caller("u", False).check("u")
    Caller("u", True).check("v")
    with pytest.raises(ApiError) as refused:
        Caller("u", False).check("v")
    assert refused.value.status == 403


VALID = {"idempotency_key": "k", "event_type": "CHECK_IN", "occurred_at": "2026-06-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"idempotency_key": None}, "idempotency_key"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "k" * 129}, "idempotency_key"),
        ({"idempotency_key": "k\n"}, "idempotency_key"),
        ({"idempotency_key": "é"}, "idempotency_key"),
        ({"event_type": "UNKNOWN"}, "event_type"),
        ({"event_type": ["CHECK_IN"]}, "event_type"),
        ({"occurred_at": 5}, "occurred_at"),
        ({"occurred_at": "x" * 41}, "occurred_at"),
        ({"timezone": 7}, "timezone"),
        ({"timezone": "z" * 65}, "timezone"),
        ({"source": ""}, "source"),
        ({"user_id": "../v"}, "user_id"),
        ({"user_id": "u\n"}, "user_id"),
        ({"user_id": ""}, "user_id"),
        ({"properties": []}, "properties"),
        ({"properties": None}, "properties"),
    ],
)
def test_an_invalid_field_is_named(change: dict[str, Any], field: str) -> None:
    problem = first_problem(engagement_schemas.EVENT, {**VALID, **change})
    assert problem is not None
    assert problem[0] == field
    assert problem[1]


@pytest.mark.parametrize("field", sorted(VALID))
def test_a_missing_field_is_named(field: str) -> None:
    rest = {name: value for name, value in VALID.items() if name != field}
    assert first_problem(engagement_schemas.EVENT, rest) == (field, "is missing")


def test_an_unknown_field_is_named() -> None:
    problem = first_problem(engagement_schemas.EVENT, {**VALID, "points": 1000})
    assert problem is not None
    assert "points" in problem[1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ("text", "body"),
        (None, "body"),
        ({}, "events"),
        ({"events": {}}, "events"),
        ({"events": []}, "events"),
        ({"events": [{}] * 101}, "events"),
        ({"events": [{}, 7]}, "events.1"),
    ],
)
def test_a_wrong_shape_is_told_by_its_place(body: Any, field: str) -> None:
    problem = first_problem(engagement_schemas.EVENTS, body)
    assert problem is not None
    assert problem[0] == field


def test_what_is_valid_has_no_problem() -> None:
    assert first_problem(engagement_schemas.EVENT, VALID) is None
    assert (
        first_problem(
            engagement_schemas.EVENT, {**VALID, "properties": {"a": [1]}, "user_id": "a.b@c:d", "source": "x"}
        )
        is None
    )
    assert first_problem(engagement_schemas.EVENTS, {"events": [{}] * 100}) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
near_events = st.fixed_dictionaries({}, optional=dict.fromkeys([*VALID, "timezone", "user_id"], json_values))


@settings(deadline=None)
@given(json_values | near_events)
def test_anything_is_valid_or_told_with_field_and_reason(value: Any) -> None:
    for schema in (
        engagement_schemas.EVENT,
        engagement_schemas.EVENTS,
        engagement_schemas.REDEMPTION,
        engagement_schemas.FREEZE,
        engagement_schemas.PAUSE,
    ):
        problem = first_problem(schema, value)
        assert problem is None or (all(problem) and len(problem[1]) <= 300)


def sent(text: str) -> dict[str, Any]:
    return {"body": text}


def sent_bytes(data: bytes) -> dict[str, Any]:
    return {"body": base64.b64encode(data).decode(), "isBase64Encoded": True}


def refusal(event: dict[str, Any], schema: Schema = engagement_schemas.EVENTS) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        json_body(event, schema)
    json.dumps([refused.value.message, refused.value.details]).encode()
    return refused.value.status, refused.value.code


EVENTS_TEXT = json.dumps({"events": [VALID]})
MALFORMED = (400, "invalid_json")


def test_a_body_is_read_plain_or_in_base64() -> None:
    assert json_body(sent(EVENTS_TEXT), engagement_schemas.EVENTS) == {"events": [VALID]}
    assert json_body(sent_bytes(EVENTS_TEXT.encode()), engagement_schemas.EVENTS) == {"events": [VALID]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "events",
        '{"events": [{"a": NaN}]}',
        '{"events": [{"a": Infinity}]}',
        '{"events": [{"a": -Infinity}]}',
        '{"events": [{"a": 1e999}]}',
        '{"events": [{"a": "\\ud800"}]}',
        '{"events": [{"\\udfff": 1}]}',
        '{"events": [{"a": ' + "9" * 5000 + "}]}",
        '{"events": ' + "[" * 100_000,
        '{"events": [' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "]}",
        "\ufeff{}",
        EVENTS_TEXT + "x",
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_json_is_a_400(text: str) -> None:
    assert refusal(sent(text)) == MALFORMED


def test_a_request_without_a_body_is_a_400() -> None:
    assert refusal({}) == MALFORMED
    assert refusal({"body": None}) == MALFORMED


@pytest.mark.parametrize("data", [b"\xff\xfe", b'{"events": "\xe9"}', b"\xed\xa0\x80", b"\x00"])
def test_bytes_that_are_not_utf_8_are_a_400(data: bytes) -> None:
    assert refusal(sent_bytes(data)) == MALFORMED


@pytest.mark.parametrize("text", ["é", "a", "====", "e30\n"])
def test_what_is_no_base64_is_a_400(text: str) -> None:
    assert refusal({"body": text, "isBase64Encoded": True}) == MALFORMED


def test_a_body_that_is_too_large_is_a_413() -> None:
    space = BODY_BYTES_MAX - len(EVENTS_TEXT)
    assert json_body(sent(EVENTS_TEXT + " " * space), engagement_schemas.EVENTS)
    assert refusal(sent(EVENTS_TEXT + " " * (space + 1))) == (413, "too_large")
    assert refusal(sent_bytes(b" " * (BODY_BYTES_MAX + 1))) == (413, "too_large")


def test_a_body_is_measured_in_bytes() -> None:
    text = json.dumps({"events": [{"a": "é" * 600_000}]}, ensure_ascii=False)
    assert refusal(sent(text)) == (413, "too_large")


def test_a_body_of_another_shape_is_a_422_that_names_the_field() -> None:
    with pytest.raises(ApiError) as refused:
        json_body(sent('{"events": [], "x": 1}'), engagement_schemas.EVENTS)
    assert (refused.value.status, refused.value.code) == (422, "invalid_field")
    with pytest.raises(ApiError) as refused:
        json_body(
            sent('{"points": 0, "reward_id": "mug", "idempotency_key": "k"}'), engagement_schemas.REDEMPTION
        )
    assert refused.value.details[0]["field"] == "points"


@pytest.mark.parametrize("points", ["5.0", "1e2"])
def test_points_are_whole_numbers_or_refused(points: str) -> None:
    text = f'{{"points": {points}, "reward_id": "mug", "idempotency_key": "k"}}'
    try:
        body = json_body(sent(text), engagement_schemas.REDEMPTION)
    except ApiError as refused:
        assert refused.status == 422
        return
    assert isinstance(body["points"], int)


@settings(deadline=None)
@given(
    st.text(max_size=60)
    | json_values.map(json.dumps)
    | near_events.map(lambda e: json.dumps({"events": [e]}))
)
def test_any_text_is_a_body_or_a_refusal(text: str) -> None:
    try:
        assert isinstance(json_body(sent(text), engagement_schemas.EVENTS), dict)
    except ApiError as refused:
        assert refused.status in (400, 413, 422)


@settings(deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_a_body_or_a_refusal(data: bytes, encoded: bool) -> None:
    event = sent_bytes(data) if encoded else {"body": data.decode("latin-1"), "isBase64Encoded": True}
    try:
        json_body(event, engagement_schemas.EVENTS)
    except ApiError as refused:
        assert refused.status in (400, 413, 422)


Claimed = tuple[dict[tuple[str, str], IdempotencyClaim], set[tuple[str, str]]]


class Stores:
    """Claims, events, accounts and payloads that are always there and hold nothing."""

    def __init__(self, zone: str | None = None) -> None:
        self.zone, self.stored = zone, list[Any]()

    def claim(self, claims: Sequence[IdempotencyClaim], now: datetime) -> Claimed:
        return {each.key: each for each in claims}, {each.key for each in claims}

    def put(self, events: Sequence[Any]) -> None:
        self.stored += events

    def missing(self, events: Sequence[Any]) -> list[Any]:
        return []

    def offload(self, event: Any) -> Any:
        return event

    def profiles(self, users: set[str]) -> dict[str, Profile]:
        return {user: Profile(user, timezone=self.zone) for user in users}


def accepted(bodies: list[Any], stores: Stores, caller: Caller = Caller("u", False)) -> list[AcceptResult]:  # noqa: B008
    door: Any = stores
    return Acceptor(door, door, door, door).accept(bodies, caller, NOW)


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


def test_an_empty_timezone_is_refused_or_like_none() -> None:
    late = {**VALID, "occurred_at": "2026-06-01T02:00:00Z", "timezone": ""}
    (result,) = accepted([late], stores := Stores("America/New_York"))
    assert result.status is AcceptStatus.REJECTED or stores.stored[0].activity_date == date(2026, 5, 31)


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


def test_an_admin_may_send_another_user_s_event_and_backfill() -> None:
    body = {**VALID, "user_id": "v", "occurred_at": "2016-06-01T12:00:00Z"}
    (result,) = accepted([body], stores := Stores(), Caller("admin", True))
    assert result.status is AcceptStatus.ACCEPTED
    assert stores.stored[0].user_id == "v"


def test_only_an_admin_sends_what_the_service_writes_itself() -> None:
    assert EVENT_TYPE in SERVER_WRITTEN
    (result,) = accepted([{**VALID, "event_type": EVENT_TYPE}], Stores(), Caller("admin", True))
    assert result.status is AcceptStatus.ACCEPTED


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
    for depth in range(limit - 150, limit):
        nested = "[" * depth + "]" * depth
        text = json.dumps({"events": [VALID]}).replace("}]}", f', "properties": {{"a": {nested}}}}}]}}')
        try:
            body = json_body(sent(text), engagement_schemas.EVENTS)
        except ApiError as refused:
            assert refused.status == 400
            continue
        try:
            accepted(body["events"], Stores())
        except RecursionError:
            pytest.fail(f"json_body takes {depth} levels, accept raises RecursionError")


def test_nesting_is_taken_up_to_its_limit() -> None:
    for levels, taken in ((NESTING_MAX, True), (NESTING_MAX + 1, False)):
        inner = levels - 4
        nested = "[" * inner + "]" * inner
        event = sent('{"events": [{"properties": {"a": ' + nested + "}}]}")
        if taken:
            assert json_body(event, engagement_schemas.EVENTS)
        else:
            assert refusal(event) == MALFORMED


class Settled:
    """One account, on which nothing is pending."""

    def __init__(self) -> None:
        self.account = Account(Profile("u"), {})

    def settle(self, user_id: str, now: datetime) -> Account:
        return self.account

    def put_profile(self, profile: Profile) -> None:
        assert profile.version == self.account.profile.version + 1
        self.account = Account(profile, {})


def test_a_pause_that_was_granted_is_kept_or_the_next_one_is_refused() -> None:
    store: Any = Settled()
    preferences = Preferences(store, EngagementCache(""))
    granted: set[tuple[date, date]] = set()
    for week in range(30):
        day = NOW.date() + timedelta(weeks=week)
        try:
            preferences.pause("u", day, day + timedelta(days=2), NOW + timedelta(weeks=week))
        except ApiError as refused:
            assert refused.status in (409, 422)
            break
        granted.add((day, day + timedelta(days=2)))
        for first, last in granted:
            assert all(
                store.account.profile.cover.is_neutral(first + timedelta(days=each))
                for each in range((last - first).days + 1)
            )


def test_a_pause_in_the_past_is_refused() -> None:
    store: Any = Settled()
    yesterday = NOW.date() - timedelta(days=1)
    with pytest.raises(ApiError) as refused:
        Preferences(store, EngagementCache("")).pause("u", yesterday, NOW.date(), NOW)
    assert (refused.value.status, refused.value.details) == (422, [{"field": "first"}])


def test_a_pause_before_an_active_date_that_a_zone_further_east_has_begun_is_refused() -> None:
    """The streak has walked over what lies before it: such a pause would change it without a trace."""
    store: Any = Settled()
    tomorrow = NOW.date() + timedelta(days=1)
    streak = fold([NOW.date() - timedelta(days=1), tomorrow], store.account.profile.cover)
    profile = replace(store.account.profile, streak=streak)
    store.account = replace(store.account, profile=profile)
    preferences = Preferences(store, EngagementCache(""))
    with pytest.raises(ApiError) as refused:
        preferences.pause("u", NOW.date(), tomorrow, NOW)
    assert (refused.value.status, refused.value.details) == (422, [{"field": "first"}])
    assert preferences.pause("u", tomorrow, tomorrow, NOW).cover.pauses == ((tomorrow, tomorrow),)


def query_refusal(read: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        read()
    return refused.value.status, refused.value.code


BAD_PARAMETER = (400, "invalid_parameter")


@pytest.mark.parametrize("text", ["0", "-1", "501", "1.5", "ten", "١", "1e2", " 1", "9" * 5000, "+5"])
def test_a_limit_that_is_none_is_a_400(text: str) -> None:
    assert query_refusal(lambda: integer({"limit": text}, "limit", 50, LIMIT_MAX)) == BAD_PARAMETER


def test_a_limit_is_a_whole_number_or_the_default() -> None:
    assert [integer(query, "limit", 50, 500) for query in ({}, {"limit": ""}, {"limit": "500"})] == [
        50,
        50,
        500,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "2026-02-30",
        "20260601",
        "2026-6-1",
        "1969-12-31",
        "3000-01-01",
        "0001-01-01",
        "2026-06-01T00:00:00Z",
        "2026-W01-1",
    ],
)
def test_a_date_that_is_none_is_a_400(text: str) -> None:
    assert query_refusal(lambda: day_of({"date": text}, "date")) == BAD_PARAMETER


def test_a_date_is_read() -> None:
    assert day_of({"date": "2026-06-01"}, "date") == date(2026, 6, 1)
    assert day_of({}, "date") is None
    assert day_of({"date": "1970-01-01"}, "date") == FIRST_DATE
    assert day_of({"date": "2999-12-31"}, "date") == LAST_DATE


def test_a_date_as_an_end_includes_its_whole_day() -> None:
    span = span_of({"from": "2026-06-01", "to": "2026-06-02"}, NOW, NOW)
    assert span == PageSpan("2026-06-01T00:00:00.000000Z", "2026-06-03T00:00:00.000000Z", 50)


def test_an_instant_is_taken_as_it_is() -> None:
    span = span_of({"from": "2026-06-01T02:00:00+02:00", "limit": "7"}, NOW, NOW)
    assert span == PageSpan("2026-06-01T00:00:00.000000Z", stamp(NOW), 7)


@pytest.mark.parametrize("text", ["now", "2026-06-01T00:00:00", "2026-06-01 00", "99999-01-01", "1969-12-31"])
def test_an_instant_that_is_none_is_a_400(text: str) -> None:
    assert query_refusal(lambda: moment_of({"from": text}, "from", timedelta())) == BAD_PARAMETER


def cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


def test_the_cursor_of_a_full_page_leads_to_the_next() -> None:
    first = page("entries", [{"created_at": stamp(NOW)}], 1, "created_at")
    assert span_of({"cursor": first["cursor"]}, NOW - timedelta(1), NOW).until == stamp(NOW)
    assert page("entries", [{"created_at": stamp(NOW)}], 2, "created_at")["cursor"] is None


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "é",
        "\ud800",
        "%%%%",
        "e30=",
        cursor([]),
        cursor("before"),
        cursor(5),
        cursor(None),
        cursor({"after": "x"}),
        base64.urlsafe_b64encode(b"\xff\xff").decode(),
        base64.urlsafe_b64encode(b"[" * 6000).decode(),
        base64.urlsafe_b64encode(b'{"before":' * 3000).decode(),
        cursor({"before": "\ud800"}),
        cursor({"before": None}),
        cursor({"before": "x" * 2000}),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_a_cursor_that_no_page_returned_is_a_400(text: str) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    assert query_refusal(lambda: span_of({"cursor": text}, since, NOW)) == BAD_PARAMETER


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["from", "to", "limit", "cursor"]), st.text(max_size=30)))
def test_any_parameters_are_a_span_or_a_400(query: dict[str, str]) -> None:
    try:
        span = span_of(query, NOW - timedelta(30), NOW)
    except ApiError as refused:
        assert (refused.status, refused.code) == BAD_PARAMETER
        return
    assert 1 <= span.limit <= LIMIT_MAX


class Tables:
    """Reads that refuse, as DynamoDB does, a BETWEEN whose ends are swapped."""

    def __init__(self) -> None:
        self.ledger = self

    def newest(self, _: str, since: str, until: str, limit: int, now: datetime) -> list[Any]:
        assert since <= until, "ValidationException: BETWEEN"
        return []

    def page(self, _: str, since: str, until: str, limit: int) -> list[Any]:
        assert since <= until, "ValidationException: BETWEEN"
        return []

    def all_days(self, _: str, first: date, last: date) -> list[Any]:
        assert first <= last, "ValidationException: BETWEEN"
        return []


SWAPPED = [
    {"from": "2026-06-02", "to": "2026-05-01"},
    {"from": "2026-06-02T00:00:00Z", "to": "2026-06-01T00:00:00Z"},
    {"from": "2500-01-01"},
    {"to": "1970-01-01"},
    {"from": "0500-01-01T00:00:00Z"},
    {"cursor": cursor({"before": "0"})},
    {"cursor": cursor({"before": "2026-05-01"}), "from": "2026-05-01"},
]


@pytest.mark.parametrize("query", SWAPPED, ids=str)
@pytest.mark.parametrize("what", ["events", "activity", "ledger"])
def test_a_span_that_ends_before_it_begins_is_empty_or_a_400(what: str, query: dict[str, str]) -> None:
    tables: Any = Tables()
    histories = Histories(tables, tables)
    try:
        if what == "activity":
            histories.activity("u", query)
        else:
            getattr(histories, what)("u", query, NOW)
    except ApiError as refused:
        assert (refused.status, refused.code) == BAD_PARAMETER


@settings(deadline=None)
@given(st.datetimes(datetime(1990, 1, 1), datetime(2035, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_an_entry_s_place_and_its_id_are_each_other_s(moment: datetime) -> None:
    there = stamp(moment)
    assert created_at(entry_id(there)) == there
    assert first_problem({"type": "string", "pattern": "^[0-9]{8}T[0-9]{12}Z$"}, entry_id(there)) is None
    assert unstamp(there) == moment


@settings(deadline=None)
@given(st.text(max_size=25) | st.from_regex(r"\d{8}T\d{6,12}Z", fullmatch=True))
def test_any_text_is_an_entry_s_id_or_a_404(text: str) -> None:
    try:
        created_at(text)
    except ApiError as refused:
        assert refused.status == 404


def test_ties_share_a_rank_and_the_next_one_is_counted_on() -> None:
    rows = with_ranks([("a", 9), ("b", 7), ("c", 7), ("d", 1)])
    assert [each["rank"] for each in rows] == [1, 2, 2, 4]
    assert rows[1] == {"rank": 2, "user_id": "b", "score": 7}
    assert with_ranks([]) == []


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), max_size=20))
def test_a_rank_is_one_more_than_the_number_of_higher_scores(scores: list[int]) -> None:
    best_first = sorted(scores, reverse=True)
    rows = with_ranks([(str(place), score) for place, score in enumerate(best_first)])
    assert [each["rank"] for each in rows] == [
        1 + sum(other > score for other in scores) for score in best_first
    ]


@pytest.mark.parametrize(
    ("board", "region", "status"), [("coins", "global", 404), ("points", "moon", 400), ("streaks", "", 400)]
)
def test_a_board_or_region_that_there_is_not_is_refused(board: str, region: str, status: int) -> None:
    assert query_refusal(lambda: check_board(board, region))[0] == status
    check_board("points", "europe")
    check_board("streaks", "global")


class Counter:
    """A cache that counts, or knows nothing."""

    def __init__(self, counts: bool) -> None:
        self.counts, self.total = counts, 0

    def count_events(self, _: str, events: int, now: datetime) -> int | None:
        self.total += events
        return self.total if self.counts else None


@pytest.mark.parametrize("with_redis", [True, False])
def test_over_the_limit_the_caller_is_told_when_to_come_again(with_redis: bool) -> None:
    cache: Any = Counter(with_redis)
    limit = RateLimit(cache, 100)
    limit.check("u", 100, NOW)
    with pytest.raises(ApiError) as refused:
        limit.check("u", 1, NOW + timedelta(seconds=20))
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "40"}


def test_without_redis_users_and_minutes_are_counted_apart() -> None:
    cache: Any = Counter(counts=False)
    limit = RateLimit(cache, 100)
    for user, moment in (("u", NOW), ("v", NOW), ("u", NOW + timedelta(minutes=1))):
        limit.check(user, 100, moment)


def called(app_handler: Any, method: str, path: str, **more: Any) -> dict[str, Any]:
    event = {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "requestContext": {
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": {"jwt": {"claims": {"sub": "u"}}},
        },
        **more,
    }
    context = SimpleNamespace(
        function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
    )
    answer: dict[str, Any] = app_handler(event, context)
    return answer


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/users/v", 403, "forbidden"),
        ("GET", "/v1/users/v/ledger", 403, "forbidden"),
        ("POST", "/v1/users/v/redemptions", 403, "forbidden"),
        ("PUT", "/v1/users/v/timezone", 403, "forbidden"),
        ("GET", "/v1/leaderboards/points/users/v", 403, "forbidden"),
        ("GET", "/v1/users/u%00", 400, "invalid_parameter"),
    ],
)
def test_a_refusal_has_the_contract_s_shape(
    method: str, path: str, status: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never() -> Any:
        raise AssertionError("no store may be asked")

    monkeypatch.setattr(ingest.engagement.users_api, "_parts", never)
    answer = called(ingest.engagement.users_api.handler, method, path)
    error = json.loads(answer["body"])["error"]
    assert (answer["statusCode"], error["code"]) == (status, code)
    assert error["message"]


def test_health_and_the_description_ask_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest.operations_api, "_parts", lambda: pytest.fail("a store was asked"))
    assert called(ingest.operations_api.handler, "GET", "/v1/health")["statusCode"] == 200
    served = called(ingest.operations_api.handler, "GET", "/v1/openapi.json")
    assert json.loads(served["body"]) == openapi.document()


def test_the_description_has_every_route_of_the_template() -> None:
    routes = {each["Properties"]["RouteKey"] for each in resources("AWS::ApiGatewayV2::Route").values()}
    paths = openapi.document()["paths"]
    assert {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods} == routes


def operations() -> list[tuple[str, dict[str, Any]]]:
    paths = openapi.document()["paths"]
    return [(path, each) for path, methods in paths.items() for each in methods.values()]


def test_operations_have_ids_of_their_own() -> None:
    ids = [each["operationId"] for _, each in operations()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("path", "operation"), operations(), ids=lambda each: str(each)[:40])
def test_an_operation_describes_its_path_its_refusals_and_who_may_call(
    path: str, operation: dict[str, Any]
) -> None:
    in_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
    assert sorted(in_path) == sorted(part.strip("{}") for part in path.split("/") if part.startswith("{"))
    assert {"400", "401", "403", "404", "409", "413", "422", "429", "503"} <= set(operation["responses"])
    assert any(status.startswith("2") for status in operation["responses"])
    assert bool(operation["security"]) is (path not in {each.path for each in openapi.ROUTES if each.is_open})


def test_every_reference_in_the_description_leads_somewhere() -> None:
    document = openapi.document()
    text = json.dumps(document)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names == set(document["components"]["schemas"])


def test_the_description_s_own_example_is_valid() -> None:
    assert first_problem(engagement_schemas.EVENT, engagement_schemas.EVENT["example"]) is None
