"""The book of rules through the real handlers: it is published while events come, and judges them by its versions."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from adapters import book_store, clock
from adapters.book_store import BookStore, Publication, PublicationConflict, shipped_document
from local.rules_command import check
from rules.days import stamp
from tests.support.memory import forget
from tests.support.site import PRODUCERS, Site

KEYS = count()
Document = dict[str, Any]


@pytest.fixture
def api(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site whose processes know a version at once, and that forgets all versions afterwards."""
    monkeypatch.setattr(book_store, "FRESH_SECONDS", 0)
    forget()
    yield api
    dynamodb = api.engine.client("dynamodb")
    for each in dynamodb.scan(TableName="RuleBooks")["Items"]:
        dynamodb.delete_item(TableName="RuleBooks", Key={name: each[name] for name in ("book", "version")})
    forget()


def book(**types: Any) -> Document:
    """The shipped book with further types."""
    made = copy.deepcopy(shipped_document())
    made["event_types"] |= {
        name: said if isinstance(said, dict) else {"points": said} for name, said in types.items()
    }
    return made


def publish(api: Site, document: Document, effective: str = "now", **more: Any) -> tuple[int, Any]:
    return api.admin("POST", "/v1/rules", {"book": document, "effective": effective, **more})


def event(kind: str, at: datetime | None = None, **more: Any) -> Document:
    when = (at or datetime.now(UTC)).isoformat()
    return {"idempotency_key": f"k{next(KEYS)}", "event_type": kind, "occurred_at": when, **more}


def errors(told: Any) -> list[tuple[str, str]]:
    return [(each["error"]["code"], each["error"]["field"]) for each in told["results"]]


def entries(api: Site, user: str) -> list[Any]:
    listed = api.admin("GET", f"/v1/users/{user}/ledger")[1]["entries"]
    return [each for each in listed if each["kind"] == "EARN"]


def points(api: Site, user: str) -> int:
    return int(api.profile(user)["total_bestie_points"])


def test_a_dry_run_tells_what_publishing_would_and_publishes_nothing(api: Site) -> None:
    now = datetime.now(UTC)
    status, told = publish(api, book(READ=7), note="why", dry_run=True)
    assert (status, told["version"], told["note"]) == (200, 2, "why")
    assert abs(datetime.fromisoformat(told["effective_at"]) - now) < timedelta(minutes=1)
    for document, effective in ((book(READ="x"), "now"), (book(), "2020-01-01T00:00:00Z")):
        refused = publish(api, document, effective, dry_run=True)
        assert refused[0] == 422
        assert refused == publish(api, document, effective)
    assert api.admin("GET", "/v1/rules")[1]["version"] == 1
    assert publish(api, book(READ=7))[1]["version"] == 2


def test_an_entry_says_when_its_event_happened_and_why_it_earned_nothing(api: Site, user: str) -> None:
    publish(api, book(READ={"points": 5, "cap": {"points": 10, "per": "week"}}, LOOK=0))
    at = datetime.now(UTC)
    for kind in ("READ", "READ", "READ", "LOOK"):
        api.send(user, event(kind, at))
    listed = entries(api, user)
    assert [each["occurred_at"] for each in listed] == [stamp(at)] * 4
    told = [(each["event_type"], each["points"], each.get("reason")) for each in reversed(listed)]
    assert told == [
        *(("READ", 5, None), ("READ", 5, None)),
        *(("READ", 0, "the limit of 10 points a week was reached"), ("LOOK", 0, None)),
    ]


def test_the_shipped_book_is_in_force_until_another_is_published(api: Site, user: str) -> None:
    status, shown = api.call(user, "GET", "/v1/rules")
    assert (status, shown["version"], shown["book"]) == (200, 1, shipped_document())
    assert publish(api, book(READ=7), note="reading counts")[0] == 201
    shown = api.call(user, "GET", "/v1/rules")[1]
    assert (shown["version"], shown["note"], shown["book"]) == (2, "reading counts", book(READ=7))
    assert "author" not in shown
    versions = api.admin("GET", "/v1/rules/versions")[1]["versions"]
    assert [(each["version"], each["author"]) for each in versions] == [(2, "operator"), (1, "streakline")]


def test_only_admins_publish_and_see_who_published(api: Site, user: str) -> None:
    for groups in ((), (PRODUCERS,)):
        assert api.call(user, "POST", "/v1/rules", {"book": book()}, *groups)[0] == 403
        assert api.call(user, "GET", "/v1/rules/versions", None, *groups)[0] == 403
    assert api.call(user, "GET", "/v1/rules")[1]["version"] == 1


def test_a_type_is_refused_by_name_until_the_book_knows_it(api: Site, user: str) -> None:
    early = event("READ", datetime.now(UTC) - timedelta(minutes=3))
    assert errors(api.send(user, early)) == [("unknown_type", "event_type")]
    publish(api, book(READ=7))
    assert api.send(user, early)["accepted"] == 1, "it counts as if it had come in time"
    assert points(api, user) == 7
    assert [each["points"] for each in entries(api, user)] == [7]


def test_an_event_is_judged_by_the_version_in_force_when_it_occurred(api: Site, user: str) -> None:
    now = datetime.now(UTC)
    document = book()
    document["event_types"]["CONTRIBUTION"]["points"] = 30
    assert publish(api, document)[0] == 201
    api.send(user, event("CONTRIBUTION", now - timedelta(minutes=1)), event("CONTRIBUTION"))
    assert sorted(each["points"] for each in entries(api, user)) == [10, 30]
    stored = api.engine.client("dynamodb").query(
        TableName="RewardsLedger",
        KeyConditionExpression="account_id = :user",
        ExpressionAttributeValues={":user": {"S": user}},
    )
    versions = {
        each["points"]["N"]: each["rules_version"]["N"] for each in stored["Items"] if "event_id" in each
    }
    assert versions == {"10": "1", "30": "2"}


def test_a_version_for_later_judges_only_from_then_on(
    api: Site, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    later = now + timedelta(days=2)
    assert publish(api, book(READ=7), stamp(later))[0] == 201
    assert api.call(user, "GET", "/v1/rules")[1]["version"] == 1
    assert api.admin("GET", f"/v1/rules?at={stamp(later)}")[1]["version"] == 2
    assert api.call(user, "GET", f"/v1/rules?at={stamp(later)}")[0] == 403, "what is planned is for admins"
    assert errors(api.send(user, event("READ"))) == [("unknown_type", "event_type")]
    monkeypatch.setattr(clock, "now", lambda: later + timedelta(seconds=5))
    assert api.send(user, event("READ", later + timedelta(seconds=1)))["accepted"] == 1


def test_nothing_is_published_into_the_past_or_broken(api: Site) -> None:
    status, told = publish(api, book(READ=7), "2026-01-01T00:00:00Z")
    assert (status, told["error"]["details"][0]["field"]) == (422, "effective")
    low = book(READ={"points": 5, "cap": {"points": 4, "per": "day"}})
    status, told = publish(api, low)
    assert (status, told["error"]["details"][0]["field"]) == (422, "event_types.READ.cap.points")
    assert publish(api, book(), "tomorrow")[1]["error"]["details"][0]["field"] == "effective"
    assert publish(api, book(READ=7), "2027-01-01T00:00:00")[0] == 422
    assert api.engine.client("dynamodb").scan(TableName="RuleBooks")["Items"] == []


def test_an_event_earns_by_its_amount_and_only_by_one_that_the_contract_takes(api: Site, user: str) -> None:
    contract = {
        "required": ["minutes"],
        "properties": {"minutes": {"type": "number", "minimum": 0, "maximum": 60}},
    }
    points = {"base": 2, "of": "minutes", "each": 5, "earns": 3}
    assert publish(api, book(READ={"points": points, "properties": contract}))[0] == 201
    sent = [
        event("READ", properties={"minutes": each}) for each in (0, 4.999, 5, 29, 60, 60.001, -1, "29", None)
    ]
    told = api.send(user, *sent)["results"]
    assert [each["status"] for each in told] == ["accepted"] * 5 + ["rejected"] * 4
    assert {each["error"]["field"] for each in told[5:]} == {"properties.minutes"}
    of_user = {
        "KeyConditionExpression": "user_id = :user",
        "ExpressionAttributeValues": {":user": {"S": user}},
    }
    stored = api.engine.client("dynamodb").query(TableName="BPEvents", **of_user)["Items"]
    assert {item["measures"]["S"]: int(item["points_awarded"]["N"]) for item in stored} == {
        "n": 2,
        "n,minutes=4999": 2,
        "n,minutes=5000": 5,
        "n,minutes=29000": 17,
        "n,minutes=60000": 38,
    }


def test_a_contract_refuses_by_field_and_reason_and_may_only_get_wider(api: Site, user: str) -> None:
    contract = {"required": ["pages"], "properties": {"pages": {"type": "integer", "minimum": 1}}}
    publish(api, book(READ={"points": 7, "properties": contract}))
    bad, good = event("READ", properties={"pages": 0}), event("READ", properties={"pages": 3})
    told = api.send(user, bad, event("READ"), good)
    assert [each["status"] for each in told["results"]] == ["rejected", "rejected", "accepted"]
    assert told["results"][0]["error"]["code"] == "contract_broken"
    assert [each["error"]["field"] for each in told["results"][:2]] == ["properties.pages"] * 2
    narrower = book(READ={"points": 7, "properties": {**contract, "additionalProperties": False}})
    status, refused = publish(api, narrower)
    assert (status, refused["error"]["details"][0]["field"]) == (
        422,
        "event_types.READ.properties.additionalProperties",
    )
    assert publish(api, book(READ=7))[0] == 201
    assert api.send(user, bad)["accepted"] == 1


def test_a_type_that_keeps_no_streak_earns_points_alone(api: Site, user: str) -> None:
    publish(api, book(OPENED={"points": 2, "cap": {"points": 4, "per": "day"}, "keeps_streak": False}))
    api.send(user, *(event("OPENED") for _ in range(3)))
    seen = api.profile(user)
    assert (seen["total_bestie_points"], seen["current_streak"], seen["active_days"]) == (4, 0, 0)
    assert api.admin("GET", f"/v1/users/{user}/activity")[1]["activity"] == []
    api.send(user, event("CHECK_IN"))
    seen = api.profile(user)
    assert (seen["total_bestie_points"], seen["current_streak"], seen["active_days"]) == (9, 1, 1)
    days = api.admin("GET", f"/v1/users/{user}/activity")[1]["activity"]
    assert [(each["events_count"], each["points_by_type"]) for each in days] == [
        (4, {"OPENED": 4, "CHECK_IN": 5})
    ]


def test_a_weekly_cap_counts_over_the_dates_of_a_week(api: Site, user: str) -> None:
    publish(api, book(LONG_RUN={"points": 10, "cap": {"events": 2, "per": "week"}}))
    now = datetime.now(UTC)
    monday = (now - timedelta(days=now.weekday(), weeks=1)).replace(hour=12)
    runs = [
        event("LONG_RUN", monday + timedelta(days=day))
        for day in (6, 0, 3, 7 if now > monday + timedelta(7) else 6)
    ]
    for run in runs:
        api.send(user, {**run, "user_id": user, "timezone": "UTC"}, groups=(PRODUCERS,))
    week = [
        each["points"]
        for each in entries(api, user)
        if each["activity_date"] <= f"{monday + timedelta(6):%Y-%m-%d}"
    ]
    assert sum(week) == 20
    assert points(api, user) == 20 + 10 * (now > monday + timedelta(7))


def test_what_freezes_and_pauses_cost_is_the_book_s(api: Site, user: str) -> None:
    document = book()
    document["freezes"] = {"held_max": 1, "free_a_month": 2, "price_points": 3}
    document["pauses"] = {"dates_max": 2, "dates_a_year": 3}
    publish(api, document)
    path = f"/v1/users/{user}/freezes"
    assert [api.call(user, "POST", path)[0] for _ in range(2)] == [201, 409]
    today = datetime.now(UTC).date()
    body = {"first": f"{today + timedelta(1)}", "last": f"{today + timedelta(3)}"}
    assert api.call(user, "POST", f"/v1/users/{user}/pauses", body)[0] == 422
    assert publish(api, {"event_types": {"READ": {"points": 1}}})[0] == 201
    assert api.call(user, "POST", path)[1]["error"]["code"] == "freezes_held_max"
    body["last"] = body["first"]
    assert api.call(user, "POST", f"/v1/users/{user}/pauses", body)[1]["error"]["code"] == "pauses_max"


def test_of_two_who_publish_at_once_one_is_told_to_look_again(api: Site) -> None:
    one, other = (BookStore(api.engine.client("dynamodb"), "RuleBooks") for _ in range(2))
    now = datetime.now(UTC)
    for store in (one, other):
        store.look()
    assert one.publish(Publication(book(A=1), now, now, "ann", "")).number == 2
    with pytest.raises(PublicationConflict):
        other.publish(Publication(book(B=1), now, now, "bob", ""))
    assert other.look().newest.author == "ann"
    assert other.publish(Publication(book(B=1), now, now, "bob", "")).number == 3
    assert one.books().at(now).number == 3


def test_the_recipe_of_an_event_type(api: Site, user: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "recipes" / "add-an-event-type.md").read_text()
    yaml = page.partition("```yaml\n")[2].partition("```")[0]
    path = tmp_path / "book.yaml"
    path.write_text("event_types:\n" + yaml[3:] if not yaml.startswith("   ") else "event_types:\n" + yaml)
    assert publish(api, check(path).document)[0] == 201
    api.send(user, *(event("BOOK_FINISHED") for _ in range(3)))
    assert points(api, user) == 60
