"""Achievements in outgoing webhooks, through the real handlers: told once, when they are true, as GET shows them."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import processors.outgoing.notifications as telling
from adapters.book_store import shipped_document
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import LOG, STATE, OutboxStore
from adapters.platform.items import encode_item
from rules.outgoing.notices import Endpoint
from tests.integration.test_endpoints_api import CONTEXT
from tests.support.engine import lean_client
from tests.support.moved_site import KEYS, Move, event, published, send
from tests.support.site import Site

FIRST = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
WORKOUT = "WORKOUT_COMPLETED"
RULES = {
    "three": {"all": [{"count": WORKOUT, "at_least": 3}], "title": "Three workouts"},
    "fit": {"all": [{"count": WORKOUT, "at_least": 2}], "withdrawn": "when_untrue", "history": True},
}
ONE_MORE = {"first": {"all": [{"count": WORKOUT, "at_least": 1}], "history": True}}


class Told:
    """A site whose changes of profiles are handed to the function that tells, each of them twice."""

    def __init__(self, api: Site, at: Move) -> None:
        self.api, self.at, self.user = api, at, f"earner{next(KEYS)}-{id(at)}"
        self.dynamodb = lean_client(api.engine, "dynamodb")
        self.endpoints = EndpointStore(self.dynamodb, "WebhookEndpoints")
        self.reads = 0

    def listen(self, *types: str) -> None:
        self.endpoints.put(Endpoint(f"e{next(KEYS)}", "acme", "https://a.example.com/", frozenset(types)))

    def act(self, day: int, *dates: int) -> list[dict[str, Any]]:
        """On a day, let events of some dates come; returns what is told."""
        self.at(FIRST + day * DAY)
        send(self.api, self.user, *(event(WORKOUT, FIRST + each * DAY) for each in dates))
        return self.hear()

    def hear(self) -> list[dict[str, Any]]:
        before = self.log()
        image = self.dynamodb.get_item(TableName="UserStreaks", Key=encode_item({"user_id": self.user}))[
            "Item"
        ]
        record = {"eventName": "MODIFY", "dynamodb": {"NewImage": image, "SequenceNumber": "1"}}
        for _ in range(2):
            assert telling.handler({"Records": [record]}, CONTEXT) == {"batchItemFailures": []}
        found = self.log()[len(before) :]
        return [each for each in found if "achievements" in each["data"]]

    def log(self) -> list[dict[str, Any]]:
        return [each.content for each in LaneStore(self.dynamodb, "Notifications").log(self.user, 0)]

    def folded(self) -> Any:
        return (
            [{}] + [each["data"]["achievements"] for each in self.log() if "achievements" in each["data"]]
        )[-1]

    def shown(self) -> Any:
        _, told = self.api.call(self.user, "GET", f"/v1/users/{self.user}/achievements")
        return {each["name"]: each["achieved_at"] for each in told["achievements"] if each["achieved"]}


@pytest.fixture
def told(api: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    book: Any = copy.deepcopy(shipped_document()) | {"achievements": RULES}
    monkeypatch.setattr("adapters.outgoing.endpoint_store.FRESH_SECONDS", -1.0)
    monkeypatch.setattr(telling._parts, "client", lambda name: lean_client(api.engine, name))
    telling._parts.cache_clear()
    with published(api, book, FIRST - DAY, monkeypatch) as at:
        made = Told(api, at)
        for each in made.endpoints.all():
            made.endpoints.remove(each.endpoint_id)
        monkeypatch.setattr("adapters.outgoing.outbox_store.DeliveryInvoker.wake", lambda *_: None)
        yield made
    telling._parts.cache_clear()


def names(found: list[dict[str, Any]]) -> list[str]:
    return [each["data"].get("achievement", each["type"]) for each in found]


def test_each_is_told_when_it_becomes_true_dated_by_its_event(told: Told) -> None:
    told.listen()
    assert told.act(0, 0) == []
    assert names(told.act(1, 1)) == ["fit"]
    (third,) = told.act(4, 3)
    assert third["type"] == "achievement.earned"
    about = {name: third["data"][name] for name in ("achievement", "title", "achieved_at")}
    assert about == {
        "achievement": "three",
        "title": "Three workouts",
        "achieved_at": "2026-03-05T12:00:00.000000Z",
    }
    assert third["data"]["profile"]["total_bestie_points"] > 0
    assert told.folded() == told.shown() != {}


def test_a_late_event_makes_it_true_or_dates_it_earlier(told: Told) -> None:
    told.listen("achievement.earned", "profile.changed")
    told.act(2, 2)
    (fit,) = told.act(2, 0)
    assert fit["data"]["achieved_at"] == "2026-03-04T12:00:00.000000Z"
    assert names(told.act(2, 1)) == ["three"], "dated earlier along with it"
    assert told.folded() == told.shown()
    assert told.folded()["fit"] == "2026-03-03T12:00:00.000000Z"


def test_a_secret_is_named_to_nobody_who_does_not_have_it(told: Told) -> None:
    secret = {"hidden": {"all": [{"count": WORKOUT, "at_least": 2}], "secret": True, "title": "Surprise"}}
    book = copy.deepcopy(shipped_document()) | {"achievements": RULES | secret}
    told.listen()
    told.at(FIRST)
    assert told.api.admin("POST", "/v1/rules", {"book": book})[0] == 201
    path = f"/v1/users/{told.user}/achievements"
    told.act(0, 0)
    answers = [told.api.call(told.user, "GET", each)[1] for each in (path, "/v1/rules")]
    assert answers[0]["secrets"] == 1
    assert not any(word in str([*answers, told.log()]) for word in ("hidden", "Surprise"))
    assert told.api.admin("GET", "/v1/rules")[1]["book"] == book
    assert "hidden" in names(told.act(1, 1))
    shown = told.api.call(told.user, "GET", path)[1]
    assert (shown["secrets"], told.shown() == told.folded(), "hidden" in told.folded()) == (0, True, True)


def test_what_the_book_withdraws_is_withdrawn_and_the_other_stays(told: Told) -> None:
    told.listen()
    told.act(2, 0, 1, 2)
    assert set(told.folded()) == {"fit", "three"}
    entries = told.api.admin("GET", f"/v1/users/{told.user}/ledger")[1]["entries"]
    for number, each in enumerate(entries[:2]):
        body = {"event_id": each["event_id"], "reason": "refunded", "idempotency_key": f"c{number}"}
        status, answer = told.api.admin("POST", f"/v1/users/{told.user}/clawbacks", body)
        assert status == 201, answer
    assert names(told.hear()) == ["profile.changed"]
    assert set(told.folded()) == {"three"}
    assert told.folded() == told.shown(), "what was told was shown, and stays"


def test_a_new_achievement_tells_nobody_of_the_past(told: Told) -> None:
    told.listen()
    told.act(1, 0, 1)
    told.at(FIRST + 2 * DAY)
    more: Any = copy.deepcopy(shipped_document()) | {"achievements": RULES | ONE_MORE}
    body = {"book": more, "effective": (FIRST + 2 * DAY + timedelta(hours=1)).isoformat()}
    assert told.api.admin("POST", "/v1/rules", body)[0] == 201
    assert names(told.act(4, 4)) == ["three"]
    assert set(told.folded()) == {"fit", "three", "first"}
    assert told.folded() == told.shown()


def test_an_endpoint_that_is_registered_in_the_middle_hears_what_there_is_and_then_what_is_new(
    told: Told,
) -> None:
    told.listen("points.changed")
    assert told.act(1, 0, 1) == [], "nobody is told of achievements, so nobody looks"
    kept = {"user_id": told.user, "activity_date": "achievements"}
    assert "Item" not in told.dynamodb.get_item(TableName="DailyActivity", Key=encode_item(kept))
    told.listen("achievement.earned", "profile.changed")
    assert names(told.act(2, 2)) == ["profile.changed"]
    assert set(told.folded()) == {"fit", "three"} == set(told.shown())


def test_a_process_that_has_not_heard_of_the_newest_book_withdraws_nothing(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.listen()
    monkeypatch.setattr("adapters.book_store.FRESH_SECONDS", 3600.0)
    assert names(told.act(1, 0, 1)) == ["fit"]
    behind = telling._parts()
    telling._parts.cache_clear()
    told.at(FIRST + 2 * DAY)
    more: Any = copy.deepcopy(shipped_document()) | {"achievements": RULES | ONE_MORE}
    body = {"book": more, "effective": (FIRST + 2 * DAY).isoformat()}
    assert told.api.admin("POST", "/v1/rules", body)[0] == 201
    assert names(told.act(3, 3)) == ["three"]
    assert set(told.folded()) == {"fit", "three", "first"}
    with monkeypatch.context() as other:
        other.setattr(telling, "_parts", lambda: behind)
        assert told.act(4, 4) == []
    assert set(told.folded()) == {"fit", "three", "first"}


def test_a_profile_that_is_behind_the_ledger_is_not_looked_at(told: Told) -> None:
    told.listen()
    told.act(0, 0)
    key = encode_item({"user_id": told.user})
    older = told.dynamodb.get_item(TableName="UserStreaks", Key=key)["Item"]
    assert names(told.act(1, 1)) == ["fit"]
    told.dynamodb.delete_item(
        TableName="Notifications", Key=encode_item({"holder": told.user, "place": STATE})
    )
    for each in told.log():
        place = f"{LOG}{each['data']['number']:015}"
        told.dynamodb.delete_item(
            TableName="Notifications", Key=encode_item({"holder": told.user, "place": place})
        )
    record = {"eventName": "INSERT", "dynamodb": {"NewImage": older, "SequenceNumber": "1"}}
    telling.handler({"Records": [record]}, CONTEXT)
    assert told.folded() == {}, "the record that tells of the second event is still to come"
    assert names(told.hear()) == ["fit"]


def test_nobody_is_told_of_somebody_whom_the_index_names_after_an_erasure(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.listen()
    monkeypatch.setattr(OutboxStore, "due", lambda *_: [told.user])
    told.at(FIRST)
    telling.handler({}, CONTEXT)
    assert told.log() == []
