"""What both clients do alike, as client/vectors.json tells it; the TypeScript client's tests read the same file."""

import json
from datetime import date
from typing import Any

import pytest
from streakline_client import Reply, estimated
from streakline_client.calls import retry_after_seconds
from streakline_client.profile import new_profile
from streakline_client.queue.clock import ClockState, date_at, instant_text, is_zone_name, offset_of
from streakline_client.queue.event_queue import Proof, WaitingEvent, batch_of, is_newer
from streakline_client.queue.sender import rest, server_time, verdict

from tests.support.moved_clock import MovedClock
from tests.support.template import ROOT

VECTORS: dict[str, Any] = json.loads((ROOT / "client" / "vectors.json").read_text())


def named(part: str) -> list[Any]:
    return [pytest.param(each, id=each["name"]) for each in VECTORS[part]]


@pytest.mark.parametrize("told", named("clocks"))
def test_an_event_is_placed_where_it_happened(told: Any) -> None:
    clock = MovedClock(counts_sleep=told.get("counts_sleep", False))
    clock.play(told["story"])
    off = told.get("off", {})
    assert clock.misplaced() == {name: off.get(name, 0) for name in clock.events}


@pytest.mark.parametrize("told", named("profiles"))
def test_a_profile_is_estimated(told: Any) -> None:
    profile: Any = {**new_profile("u"), **told["profile"]}
    dates, today = map(date.fromisoformat, told["dates"]), date.fromisoformat(told["today"])
    shown = estimated(profile, dates, today)
    assert {name: shown[name] for name in told["shown"]} == told["shown"]  # type: ignore[literal-required]
    assert not set(told.get("gone", ())) & shown.keys()
    assert shown.get("as_of") == told["today"]


@pytest.mark.parametrize("told", named("replies"))
def test_a_reply_is_understood(told: Any) -> None:
    event: Any = {"idempotency_key": "k", "event_type": "X", "occurred_at": "2026-03-02T00:00:00+00:00"}
    event["timezone"] = "Somewhere"
    events = [WaitingEvent(number, 0, 0, event) for number in range(told["events"])]
    body = b"<html>" if told["body"] is None else json.dumps(told["body"]).encode()
    found = verdict(events, Reply(told["status"], body))
    assert [each.number for each in found.taken] == told["taken"]
    assert [[one.number, event.code, event.field] for one, event in found.refused] == told["refused"]
    assert (found.trouble and found.trouble.kind) == told.get("trouble")
    assert [each.number for each in found.misplaced] == told.get("misplaced", [])
    assert (found.is_to_halve, found.is_without_fields) == (told.get("halve", False), told.get("bare", False))


@pytest.mark.parametrize("told", VECTORS["moments"])
def test_a_moment_is_written(told: Any) -> None:
    assert instant_text(told["instant"], told["offset"]) == told["written"]
    assert offset_of(told["written"]) == told["offset"]
    day = date_at(told["instant"], told["offset"], told.get("start", "00:00"))
    assert day.isoformat() == told["date"]


@pytest.mark.parametrize(("name", "is_known"), VECTORS["zones"])
def test_a_zone_is_sent_by_its_name_if_a_service_may_know_that(name: str, is_known: bool) -> None:
    assert is_zone_name(name) is is_known


@pytest.mark.parametrize("told", named("proofs"))
def test_a_batch_carries_the_receipt_of_its_first_event(told: Any) -> None:
    event: Any = {"idempotency_key": "k", "event_type": "X", "occurred_at": "2026-03-02T00:00:00Z"}
    waiting = [
        WaitingEvent(number, 0, 0, event, Proof(*each) if each else None)
        for number, each in enumerate(told["waiting"])
    ]
    batches = []
    while waiting:
        some = batch_of(waiting, ClockState())
        batches.append([len(some), some[0].proof and some[0].proof.receipt])
        waiting = waiting[len(some) :]
    assert batches == told["batches"]


@pytest.mark.parametrize(("than", "receipt", "is_kept"), VECTORS["receipts"])
def test_the_newest_receipt_is_kept(than: str | None, receipt: str, is_kept: bool) -> None:
    assert is_newer(receipt, than or "") is is_kept


@pytest.mark.parametrize("told", VECTORS["rests"])
def test_a_queue_rests_as_long_as_the_service_asks(told: Any) -> None:
    least, most = told["seconds"]
    assert least <= rest(told.get("attempt", 0), retry_after_seconds(told["headers"])) <= most


@pytest.mark.parametrize("told", named("times"))
def test_only_a_fresh_answer_of_the_service_tells_the_time(told: Any) -> None:
    body = b"<html>" if told["body"] is None else json.dumps(told["body"]).encode()
    assert server_time(Reply(told["status"], body, told["headers"])) == told["time"]
