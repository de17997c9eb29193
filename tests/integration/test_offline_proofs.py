"""A week at sea counts, and whoever lies about it does not, through the real handlers (rule 16)."""

import os
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters.engagement.stretch_store import KEY
from adapters.privacy.tombstones import erasure_log_puts
from ingest.engagement import events_api
from ingest.web.caller import PRODUCERS
from rules.days import stamp
from rules.key_ring import KeyRing, to_text
from rules.privacy.tombstones import Act, ErasureLogEntry, digest_of, user_subject
from tests.support.engine import Engine
from tests.support.gateway import ask, token
from tests.support.sailing import Device, World
from tests.support.site import Site, site

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
USERS = iter(f"sailor{number}" for number in range(1000))


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as made:
        yield made


@pytest.fixture
def world(api: Site, monkeypatch: pytest.MonkeyPatch) -> World:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return World(api, monkeypatch, noon)


@pytest.fixture
def user() -> str:
    return next(USERS)


def sail(device: Device, days: int) -> list[date]:
    """A device is in touch, and then tracks an event a day, for so many days, without a network."""
    device.look()
    dates = []
    for _ in range(days):
        device.world.wait(DAY)
        dates.append(device.world.now.date())
        device.track()
    device.world.wait(HOUR)
    return dates


def activity(world: World, user: str) -> list[str]:
    world.site.settle()
    found = world.site.admin("GET", f"/v1/users/{user}/activity?limit=100")[1]
    return sorted(each["activity_date"] for each in found["activity"])


@pytest.mark.parametrize("hours", [-26, 0.5, 26])
def test_a_week_at_sea_counts_on_its_true_dates_however_wrong_the_clock(
    world: World, user: str, hours: float
) -> None:
    phone = Device(world, user, wrong=hours * HOUR)
    dates = sail(phone, 7)
    assert phone.send() == ["accepted"] * 7
    assert activity(world, user) == [each.isoformat() for each in dates]
    profile = world.site.profile(user)
    assert profile["current_streak"] == 7


def test_explain_says_that_it_was_proven_and_both_ends(world: World, user: str) -> None:
    phone = Device(world, user)
    left = world.now
    dates = sail(phone, 7)
    phone.send()
    world.site.settle()
    path = f"/v1/users/{user}/streak/explain?date="
    early, late = (world.site.admin("GET", path + str(each))[1]["event"] for each in (dates[0], dates[-1]))
    assert early["offline_since"] == left.isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert early["arrived_at"] > "2"
    assert "offline_since" not in late, "an event of less than 72 hours ago needs no proof"
    told = world.site.admin("GET", f"/v1/users/{user}/events")[1]["events"]
    assert sum("offline_since" in each for each in told) == 4


def test_without_a_receipt_72_hours_are_the_limit(world: World, user: str) -> None:
    phone = Device(world, user)
    sail(phone, 7)
    told = phone.send(receipt=None)
    assert [each.partition(":")[0] for each in told] == ["backfill_forbidden"] * 4 + ["accepted"] * 3


def test_an_answer_that_was_lost_and_a_queue_of_many_batches_change_nothing(world: World, user: str) -> None:
    phone = Device(world, user)
    sail(phone, 9)
    first = [body for body, _ in phone.waiting[:3]]
    receipt = phone.waiting[0][1]
    assert phone.send_again(first, receipt=receipt) == ["accepted"] * 3
    assert phone.send_again(first, receipt=receipt) == ["duplicate"] * 3
    world.wait(30 * HOUR)
    assert phone.send(most=4) == ["duplicate"] * 3 + ["accepted"]
    world.wait(30 * HOUR)
    assert phone.send() == ["accepted"] * 5
    world.wait(30 * DAY)
    assert phone.send_again(first, receipt=receipt) == ["duplicate"] * 3, "what was taken stays taken"


def test_a_receipt_comes_with_answers_to_devices_that_name_themselves_and_to_no_server(
    world: World, user: str
) -> None:
    def given(path: str, **headers: str) -> Any:
        return world.request(user, "GET", path, None, headers)[1]

    named = {"streakline-device": "device-1"}
    for path in (f"/v1/users/{user}", "/v1/users/somebody-else", "/v1/leaderboards/nonsense"):
        assert given(path, **named), path
    assert given(f"/v1/users/{user}") is None
    assert given(f"/v1/users/{user}", **{"streakline-device": "a b"}) is None
    server = {"authorization": f"Bearer {token(user, PRODUCERS)}", **named}
    assert "Streakline-Time-Receipt" not in ask("GET", f"/v1/users/{user}", server).headers


def test_a_forged_receipt_is_refused(world: World, user: str) -> None:
    phone = Device(world, user)
    phone.look()
    genuine = str(phone.receipt)
    world.wait(5 * DAY)
    phone.track(world.now - 4 * DAY)
    phone.track()
    forged = genuine.replace("1.1", "1.9", 1)
    late, fresh = phone.send(receipt=forged)
    assert late.startswith("receipt_refused: receipt is forged")
    assert fresh == "accepted"


def test_another_user_s_and_another_device_s_receipts_are_refused(world: World, user: str) -> None:
    other, tablet = Device(world, next(USERS)), Device(world, user, "device-2")
    for each in (other, tablet):
        each.look()
    world.wait(5 * DAY)
    phone = Device(world, user)
    for receipt in (other.receipt, tablet.receipt):
        phone.track(world.now - 4 * DAY)
        assert phone.send(receipt=receipt)[0].startswith("receipt_refused: receipt is foreign")


def test_who_sends_again_what_was_not_answered_has_been_offline_since_then(world: World, user: str) -> None:
    """On a bad network the answer is lost, and with it the newer receipt; then the ship is out again."""
    phone = Device(world, user)
    sail(phone, 5)
    unanswered, first = [body for body, _ in phone.waiting], phone.waiting[0][1]
    assert phone.send() == ["accepted"] * 5
    at_last_contact, phone.waiting, phone.receipt = world.now, [], first
    for _ in range(6):
        world.wait(DAY)
        phone.track()
    second = [body for body, _ in phone.waiting]
    made_up = {**second[0], "idempotency_key": "made-up", "occurred_at": phone.text(at_last_contact - DAY)}
    said = phone.send_again([*unanswered, *second[:4], made_up], receipt=first)
    assert said[:9] == ["duplicate"] * 5 + ["accepted"] * 4
    assert said[9].startswith("backfill_forbidden"), "before the contact the receipt has done its work"
    assert phone.send_again(second[4:], receipt=first) == ["accepted"] * 2
    world.wait(4 * DAY)
    phone.waiting = []
    phone.track(world.now - 4 * DAY)
    assert phone.send(receipt=first)[0].startswith("receipt_refused: receipt was used before")


def test_two_devices_at_sea_both_count_if_both_come_back_within_72_hours(world: World, user: str) -> None:
    phone, tablet = Device(world, user), Device(world, user, "device-2")
    tablet.look()
    sail(phone, 7)
    for days in (6, 5, 4):
        tablet.track(world.now - days * DAY)
    assert phone.send() == ["accepted"] * 7
    world.wait(2 * DAY)
    assert tablet.send(most=2) == ["accepted"] * 2
    world.wait(2 * DAY)
    assert tablet.send(receipt=tablet.waiting[0][1])[0].partition(":")[0] == "receipt_refused"


def test_a_device_in_a_drawer_proves_nothing_while_another_is_used(world: World, user: str) -> None:
    """The cheapest lie: keep a receipt for bad days, and mend a missed date with it a week later."""
    drawer, phone = Device(world, user, "drawer-1"), Device(world, user)
    drawer.look()
    for day in range(8):
        world.wait(DAY)
        if day != 2:
            phone.track()
            assert phone.send() == ["accepted"]
    missed = world.now - 5 * DAY
    drawer.track(missed)
    [told] = drawer.send()
    assert told.startswith("backfill_forbidden")
    assert "the last contact that is known" in told


def test_many_devices_in_a_drawer_do_not_make_72_hours_longer(world: World, user: str) -> None:
    """Opening a stretch early, so as to have time to use it, gains nothing either."""
    phone = Device(world, user)
    drawers = [Device(world, user, f"drawer-{number}") for number in range(8)]
    for each in drawers:
        each.look()
    taken = []
    for each in drawers:
        world.wait(DAY)
        phone.track()
        phone.send()
        each.track(world.now - 80 * HOUR)
        each.send()
        for age in (73, 80, 90, 100, 120):
            each.track(world.now - age * HOUR)
            taken += [age for told in each.send() if told == "accepted"]
    assert all(age <= 72 + 24 for age in taken), "contact was once a day"


def test_what_servers_send_and_operators_import_for_a_sailor_is_no_sign_of_him(
    world: World, user: str
) -> None:
    phone = Device(world, user)
    sail(phone, 3)
    old = {
        "idempotency_key": "archive",
        "event_type": "CHECK_IN",
        "occurred_at": (world.now - 80 * HOUR).isoformat(),
        "user_id": user,
    }
    assert world.site.send("import", old, groups=(PRODUCERS,))["accepted"] == 1
    bought = {
        "idempotency_key": "shop",
        "event_type": "PURCHASE_COMPLETED",
        "occurred_at": world.now.isoformat(),
        "user_id": user,
    }
    assert world.site.send("shop", bought, groups=(PRODUCERS,))["accepted"] == 1
    for _ in range(4):
        world.wait(DAY)
        phone.track()
    assert phone.send() == ["accepted"] * 7


def test_batches_at_once_open_one_stretch(world: World, user: str, engine: Engine) -> None:
    phone = Device(world, user)
    sail(phone, 8)
    batches = [(body, receipt) for body, receipt in phone.waiting]
    told: list[str] = []

    def send(body: Any, receipt: str | None) -> None:
        told.extend(phone.send_again([body], receipt=receipt))

    threads = [threading.Thread(target=send, args=each) for each in batches]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert told == ["accepted"] * 8
    found = engine.client("dynamodb").get_item(
        TableName="IdempotencyKeys", Key={"user_id": {"S": user}, "idempotency_key": {"S": KEY}}
    )
    assert len(found["Item"]["stretches"]["L"]) == 1


def test_receipts_of_an_older_and_of_an_announced_key_count_and_those_of_a_retired_one_do_not(
    world: World, user: str, engine: Engine
) -> None:
    secrets, arn = engine.client("secretsmanager"), os.environ["RECEIPT_SECRET_ARN"]
    before = secrets.get_secret_value(SecretId=arn)["SecretString"]
    rings = [KeyRing(("new", before)), KeyRing(("new",), next=before), KeyRing(("new",))]
    told = []
    for number, ring in enumerate(rings):
        phone = Device(world, user, f"device-{number}")
        secrets.put_secret_value(SecretId=arn, SecretString=before)
        world.wait(HOUR)  # keys are read again
        phone.look()
        secrets.put_secret_value(SecretId=arn, SecretString=to_text(ring))
        world.wait(5 * DAY)
        phone.track(world.now - 4 * DAY)
        told += [each.partition(": it")[0] for each in phone.send(receipt=phone.receipt)]
    secrets.put_secret_value(SecretId=arn, SecretString=before)
    world.wait(HOUR)
    Device(world, user).look()
    assert told == [
        "accepted",
        "accepted",
        "receipt_refused: receipt is forged: the service did not sign it, or has retired the key",
    ]


def test_without_keys_answers_come_without_receipts_and_late_batches_are_to_come_again(
    world: World, user: str, engine: Engine
) -> None:
    phone = Device(world, user)
    sail(phone, 5)
    held = phone.receipt
    secrets, arn = engine.client("secretsmanager"), os.environ["RECEIPT_SECRET_ARN"]
    before = secrets.get_secret_value(SecretId=arn)["SecretString"]
    try:
        secrets.put_secret_value(SecretId=arn, SecretString='{"keys": []}')
        world.wait(HOUR)
        phone.look()
        assert phone.receipt is None
        body = {"events": [body for body, _ in phone.waiting], "receipt": held}
        status, _, told = world.request(user, "POST", "/v1/events", body, {"streakline-device": phone.name})
        assert (status, told["error"]["code"]) == (503, "unavailable")
    finally:
        secrets.put_secret_value(SecretId=arn, SecretString=before)
    world.wait(HOUR)
    assert phone.send() == ["accepted"] * 5


def test_a_batch_without_late_events_reads_and_writes_nothing_more(
    world: World, user: str, engine: Engine
) -> None:
    phone = Device(world, user)
    phone.look()
    world.wait(DAY)
    phone.track()
    assert phone.send() == ["accepted"]
    found = engine.client("dynamodb").get_item(
        TableName="IdempotencyKeys", Key={"user_id": {"S": user}, "idempotency_key": {"S": KEY}}
    )
    assert "Item" not in found


def test_no_client_s_key_is_that_of_the_stretches(world: World, user: str) -> None:
    phone = Device(world, user)
    phone.track()
    phone.waiting[0][0]["idempotency_key"] = KEY
    assert phone.send()[0].startswith("invalid_field")


def test_after_an_erasure_neither_old_events_nor_old_receipts_bring_anything(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    secret = engine.client("secretsmanager").create_secret(Name=f"e-{uuid4()}", SecretString="e" * 32)["ARN"]
    with site(engine, ERASURE_SECRET_ARN=secret) as api:
        world = World(
            api, monkeypatch, datetime.now(UTC) - timedelta(days=7)
        )  # an entry of the future hides others
        phone = Device(world, user)
        sail(phone, 6)
        old = phone.receipt
        assert phone.send() == ["accepted"] * 6
        erased, lifted = world.now - 5 * HOUR, world.now - 4 * HOUR
        digest = digest_of("e" * 32, user_subject(user))
        entries = [
            ErasureLogEntry(stamp(erased), digest, Act.ERASED, "1"),
            ErasureLogEntry(stamp(lifted), digest, Act.LIFTED, "1"),
        ]
        engine.client("dynamodb").transact_write_items(TransactItems=erasure_log_puts("Erasures", entries))
        engine.client("dynamodb").delete_item(
            TableName="IdempotencyKeys", Key={"user_id": {"S": user}, "idempotency_key": {"S": KEY}}
        )
        events_api._parts.cache_clear()
        phone.track(world.now - 4 * DAY)
        assert phone.send(receipt=old)[0].startswith(
            "receipt_refused: receipt was given before the user was erased"
        )
        world.wait(5 * DAY)
        phone.track(world.now - 4 * DAY)
        assert phone.send(receipt=old)[0].startswith(
            "receipt_refused: receipt was given before the user was erased"
        )
