"""Phones come back from the lake: each is told again, of nothing twice; none that is gone comes back (rule 21)."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import encode_item
from adapters.platform.objects import FolderObjects
from adapters.questions.erasers import SubscriptionEraser
from adapters.questions.subscription_store import KEY, SubscriptionStore, token_key
from analytics.curation.curate import curate
from analytics.curation.raw_lines import unzip
from analytics.lake.layout import raw_partition
from analytics.questions.gone_phones import GONE_PHONES_STAY, GonePhones
from analytics.restore.restorer import RestoreReport
from rules.days import stamp
from rules.lake.table_items import REMOVED
from rules.privacy.erasures import Person
from rules.privacy.tombstones import Act, ErasureLogEntry, user_subject
from rules.questions.phone_items import CHANGED, PHONES
from tests.support.dying import DyingFolder, Killed
from tests.support.engine import running
from tests.support.forgetting import having
from tests.support.raw_lake import rows
from tests.support.restore_drill import Drill, tombstones
from tests.support.site import Site, site

LATER = GONE_PHONES_STAY + timedelta(minutes=1)


@pytest.fixture(scope="module")
def api() -> Iterator[Site]:
    with running() as engine, site(engine, SUBSCRIPTIONS_MAX="2") as prepared:
        yield prepared


@pytest.fixture
def drill(api: Site, tmp_path: Path) -> Drill:
    """Two users have a phone each; the second one's is told of everything once a week."""
    made = Drill(api, tmp_path, 3)
    made.lose()
    for each in made.streams.values():
        each.read()  # that other tests' phones are gone
    made.subscribe("ann")
    made.subscribe("ben", min_interval_minutes=10080, streak_reminders=True)
    return made


def kept(drill: Drill) -> list[dict[str, Any]]:
    found = [each for each in rows(drill.objects, "table_items") if each["store"] == PHONES]
    return sorted(found, key=lambda each: str(each["version"]))


def lost(drill: Drill, **more: Any) -> RestoreReport:
    drill.publish()
    drill.lose("Subscriptions", "Limits")
    return drill.restore(**more)


def compared(items: list[Any]) -> list[Any]:
    """A reminder's marker is due at once after a restore: the next run finds out the hour."""
    due = {"last_notified_at": {"S": "now"}}
    return [{**each, CHANGED: 0, **(due if each[KEY]["S"].endswith("#reminder") else {})} for each in items]


def test_a_phone_that_comes_back_is_told_of_what_comes_and_of_nothing_twice(drill: Drill) -> None:
    told = drill.ask()
    assert drill.phones.got == {"ann-phone": 1, "ben-phone": 1}
    before = drill.items("Subscriptions")
    outcome = lost(drill)
    assert (outcome.others["phones"], outcome.lacks, outcome.changes[PHONES]) == (2, [], len(before))
    after = drill.items("Subscriptions")
    assert compared(after) == compared(before)
    drill.announce(told)
    assert drill.phones.got == {"ann-phone": 1, "ben-phone": 1}
    drill.ask("it")
    assert drill.phones.got == {"ann-phone": 2, "ben-phone": 1}, "a week is not over"


def test_what_a_request_is_answered_about_a_phone_is_the_same(drill: Drill) -> None:
    first = drill.subscribe("ann")
    lost(drill)
    again = drill.subscribe("ann")
    assert {**again, "updated_at": ""} == {**first, "updated_at": ""}
    assert again["updated_at"] > first["updated_at"]
    assert drill.subscribe("ann", fcm_token="another")["subscription_id"]
    status, refused = drill.api.call("ann", "POST", "/v1/subscriptions", {"fcm_token": "one-too-many"})
    assert (status, refused["error"]["code"]) == (409, "subscriptions_max")
    path = f"/v1/subscriptions/{first['subscription_id']}"
    assert drill.api.call("ben", "DELETE", path)[0] == 404
    assert drill.api.call("ann", "DELETE", path)[0] == 204


def test_a_note_of_a_message_costs_no_row(drill: Drill) -> None:
    drill.publish()
    assert len(kept(drill)) == 2
    drill.ask()
    drill.publish()
    assert len(kept(drill)) == 4, "the first message makes the endpoint, which is kept"
    for _ in range(3):
        drill.ask()
    drill.publish()
    assert len(kept(drill)) == 4
    drill.subscribe("ann", timezone="Asia/Tokyo")
    drill.publish()
    assert json.loads(kept(drill)[4]["item"])["timezone"] == {"S": "Asia/Tokyo"}


def test_a_phone_that_is_gone_does_not_come_back(drill: Drill) -> None:
    own = drill.subscribe("ann")["subscription_id"]
    assert drill.api.call("ann", "DELETE", f"/v1/subscriptions/{own}")[0] == 204
    outcome = lost(drill)
    assert (outcome.others["phones"], [each["item"] for each in kept(drill)].count(REMOVED)) == (1, 1)
    assert "ann" not in repr(drill.items("Subscriptions"))


def test_one_whose_token_is_dead_comes_back_without_it(drill: Drill) -> None:
    drill.phones.dead = frozenset({"ann-phone"})
    drill.ask()
    before = drill.items("Subscriptions")
    assert "ann-phone" not in repr(before)
    lost(drill)
    own = [each for each in drill.items("Subscriptions") if each.get("owner") == {"S": "ann"}]
    assert [each for each in before if each.get("owner") == {"S": "ann"}] == own
    drill.phones.dead = frozenset()
    drill.subscribe("ann")
    drill.ask()
    assert drill.phones.got["ann-phone"] == 1


def test_who_was_erased_and_what_somebody_has_by_now_stay(drill: Drill) -> None:
    drill.publish()
    drill.lose("Subscriptions", "Limits")
    digest = tombstones(drill.dynamodb).digest(user_subject("ben"))
    entry = ErasureLogEntry(stamp(datetime.now(UTC) + timedelta(minutes=1)), digest, Act.ERASED, "e1")
    new = encode_item({"part": "journal", "place": entry.place, "erasure_id": "e1"})
    drill.dynamodb.put_item(TableName="Erasures", Item=new)
    drill.subscribe("cleo", fcm_token="ann-phone")
    outcome = drill.restore()
    assert [each.reason for each in outcome.lacks] == [
        "the phone has another subscription by now, which stays"
    ]
    owners = {each["owner"]["S"] for each in drill.items("Subscriptions") if "owner" in each}
    assert owners == {"cleo"}


def test_an_erasure_finds_what_came_back(drill: Drill) -> None:
    lost(drill)
    eraser = SubscriptionEraser(drill.dynamodb, lambda: None, "Subscriptions", "Limits")
    found = eraser.find(Person("digest", user_id="ann"))
    assert len(found) == 1
    eraser.remove(found)
    assert "ann" not in repr(drill.items("Subscriptions"))


def test_as_of_an_instant_it_is_as_it_was_but_what_was_told_stays_told(drill: Drill) -> None:
    drill.subscribe("ann", timezone="Asia/Tokyo")
    question = drill.ask()
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    while datetime.now(UTC) < until:
        pass
    drill.subscribe("ann", timezone="UTC")
    own = drill.subscribe("ben")["subscription_id"]
    drill.api.call("ben", "DELETE", f"/v1/subscriptions/{own}")
    newer = drill.ask()
    lost(drill, until=until)
    zones = {
        each["timezone"]["S"] for each in drill.items("Subscriptions") if each.get("owner") == {"S": "ann"}
    }
    assert zones == {"Asia/Tokyo"}
    assert "ben" in repr(drill.items("Subscriptions")), "its removal is of later"
    got = dict(drill.phones.got)
    for each in (question, newer):
        drill.announce(each)
    assert drill.phones.got == got, "ann was told of both, and ben is told once a week"


def test_a_damaged_table_is_replaced(drill: Drill) -> None:
    drill.ask()
    drill.publish()
    whole = drill.items("Subscriptions")
    mine = next(each for each in whole if each.get("owner") == {"S": "ann"})
    store = SubscriptionStore(drill.dynamodb, "Subscriptions")
    for damaged in (
        mine | {"fcm_token": {"S": "eve"}, "audience": {"N": "7"}},
        encode_item({KEY: token_key("eve"), "of": mine[KEY]["S"]}),
        encode_item({KEY: "nobody", "owner": "nobody", "fcm_token": "x"}),
    ):
        drill.dynamodb.put_item(TableName=store.table, Item=damaged)
    drill.dynamodb.delete_item(TableName=store.table, Key=encode_item({KEY: f"{mine[KEY]['S']}#tag=it"}))
    assert drill.restore().changes[PHONES] == 0, "what is there stays"
    assert drill.restore(replaced=(PHONES,)).lacks == []
    strip = [{name: each for name, each in one.items() if name != CHANGED} for one in whole]
    assert [
        {name: each for name, each in one.items() if name != CHANGED} for one in drill.items("Subscriptions")
    ] == strip
    assert drill.restore(replaced=(PHONES,)).changes[PHONES] == 0


@pytest.mark.parametrize(
    "dies",
    [True, False],
)
def test_a_week_after_a_phone_is_gone_nothing_of_it_is_in_the_lake(drill: Drill, dies: bool) -> None:
    drill.phones.dead = frozenset({"ben-phone"})
    own = drill.subscribe("ann")["subscription_id"]
    drill.publish()
    drill.api.call("ann", "DELETE", f"/v1/subscriptions/{own}")
    drill.ask()
    drill.subscribe("cleo")
    drill.publish()
    lake = Path(drill.objects.root)
    assert GonePhones(drill.objects).run(datetime.now(UTC)) == (True, 0)
    assert having(lake, ["ann-phone"])
    now, gone = datetime.now(UTC) + LATER, 0
    for calls in range(1, 200):
        objects = DyingFolder.at(drill.objects.root, calls if dies else 10**9, "before")
        try:
            _, gone = GonePhones(objects).run(now)
            break
        except Killed:
            continue
    assert gone or dies
    assert having(lake, ["ann-phone", "ben-phone", '"ann"']) == set()
    assert having(lake, ["cleo-phone"]), "who has a phone keeps it"
    assert GonePhones(drill.objects).run(now) == (True, 0)
    assert [GonePhones(drill.objects).is_due(now + timedelta(days=days)) for days in (0, 6, 7)] == [
        False,
        False,
        True,
    ]
    drill.lose("Subscriptions", "Limits")
    assert drill.restore().others["phones"] == 2, "cleo's, and ben's without a token"


class Contended(FolderObjects):
    """A folder in which another writer is faster, whenever a file is to be replaced."""

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        (self.root / key).write_bytes(self.get(key))
        super().put_if(key, data, etag)


def test_a_file_that_somebody_else_writes_meanwhile_waits_for_a_night_and_not_for_a_week(
    drill: Drill,
) -> None:
    own = drill.subscribe("ann")["subscription_id"]
    drill.publish()
    drill.api.call("ann", "DELETE", f"/v1/subscriptions/{own}")
    drill.publish()
    now = datetime.now(UTC) + LATER
    assert GonePhones(Contended(drill.objects.root)).run(now) == (True, 0)
    assert having(Path(drill.objects.root), ["ann-phone"])
    assert GonePhones(drill.objects).is_due(now + timedelta(days=1))
    assert GonePhones(drill.objects).run(now)[1] > 0
    assert having(Path(drill.objects.root), ["ann-phone"]) == set()
    assert not GonePhones(drill.objects).is_due(now + timedelta(days=1))


def test_a_row_that_comes_late_leaves_with_the_next_pass(drill: Drill) -> None:
    own = drill.subscribe("ann")["subscription_id"]
    drill.publish()
    late = {each.key: drill.objects.get(each.key) for each in drill.objects.list("raw/table_items/")}
    drill.api.call("ann", "DELETE", f"/v1/subscriptions/{own}")
    drill.publish()
    now = datetime.now(UTC) + LATER
    assert GonePhones(drill.objects).run(now)[1] > 0
    for key, data in late.items():
        drill.objects.put(f"{key}-late", data)
        place = raw_partition(key)
        assert place
        curate(drill.objects, place)
    assert having(Path(drill.objects.root), ["ann-phone"])
    assert GonePhones(drill.objects).run(now)[1] > 0
    assert having(Path(drill.objects.root), ["ann-phone"]) == set()


def test_a_row_that_firehose_could_not_place_leaves_too(drill: Drill) -> None:
    own = drill.subscribe("ann")["subscription_id"]
    drill.publish()
    lines = b"".join(unzip(drill.objects.get(each.key)) for each in drill.objects.list("raw/table_items/"))
    drill.api.call("ann", "DELETE", f"/v1/subscriptions/{own}")
    drill.publish()
    record = json.dumps({"rawData": base64.b64encode(lines).decode(), "errorCode": "DynamicPartitioning"})
    drill.objects.put("errors/table_items/processing-failed/one", record.encode())
    GonePhones(drill.objects).run(datetime.now(UTC) + LATER)
    assert having(Path(drill.objects.root), ["ann-phone"]) == set()
