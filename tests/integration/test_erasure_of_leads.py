"""A lead who is erased, with all leads of the same person, is nowhere any more, and no webhook makes one again."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.bootstrap import process_client
from adapters.leads.erasers import IdentityEraser
from adapters.leads.erasures import LeadErasureStarter
from adapters.platform.items import decode_item
from adapters.platform.redis import Redis
from adapters.postgresql.postgres import database
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.stores import ErasureSettings
from adapters.privacy.tombstones import Tombstones, tombstones_of
from adapters.settings import read_settings
from ingest import openapi, privacy_api
from ingest.leads import identity_api, leads_api
from processors import erasure
from processors.leads.lead_events import note_at_roots
from rules.leads.lead_events import from_item
from tests.support.byte_scan import stores_with
from tests.support.engine import Engine
from tests.support.exports import downloaded, made_in_process
from tests.support.forgetting import two_nights
from tests.support.http_requests import called
from tests.support.identity_server import WAYS, Registry
from tests.support.lead_processors import Leads
from tests.support.lead_site import Site
from tests.support.memory import forget
from tests.support.webhooks import ORDER, generic, text, whatsapp

pytestmark = pytest.mark.xdist_group("identity")
FOREVER = float("inf")
NOW = datetime(2026, 3, 10, 6, tzinfo=UTC)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test runs by each connection to PostgreSQL: it calls all functions of erasures."""
    is_whole = metafunc.function.__name__ == "test_nothing_is_left_of_the_person_and_all_of_another"
    by_driver, by_api = WAYS
    ways = [by_driver, by_api] if is_whole else [by_driver]
    metafunc.parametrize("registry", ways, indirect=True)


@pytest.fixture
def shop(
    engine: Engine, site: Site, registry: Registry, lone_redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """A consumer of webhooks, with the real functions of erasures beside it."""
    more = {"IDENTITY_URL": registry.url, "SETTLE_SECONDS": "0"}
    for name, value in {**engine.environment(lone_redis_url), **more}.items():
        if name != "AWS_ENDPOINT_URL_RDS_DATA":
            monkeypatch.setenv(name, value)
    forget()
    yield site
    forget()


def fresh() -> Tombstones:
    """A process's view that knows what is written now."""
    return tombstones_of(read_settings(ErasureSettings), process_client)


def api(
    method: str, path: str, *groups: str, body: Any = None, handler: Any = privacy_api.handler
) -> tuple[int, Any, str]:
    told = called(
        handler,
        method,
        path,
        requestContext={
            "http": {"method": method, "path": path},
            "stage": "$default",
            "authorizer": {"jwt": {"claims": {"sub": "operator", "cognito:groups": list(groups)}}},
        },
        **({"body": json.dumps(body)} if body is not None else {}),
    )
    return told["statusCode"], json.loads(told["body"]), told["body"]


def admin(method: str, path: str, body: Any = None) -> tuple[int, Any, str]:
    return api(method, path, "streakline/admin", body=body)


def order(number: int, address: str, at: datetime = NOW, **more: Any) -> dict[str, Any]:
    customer = {**ORDER["customer"], "id": f"c-{address}", "email": address, "phone": None}
    return {**ORDER, "id": number, "created_at": at.isoformat(), "customer": customer, **more}


def leads_of(site: Site) -> list[str]:
    query = "SELECT lead_organization_id FROM identity.lead_organization WHERE organization_id = %s ORDER BY number"
    return [row[0] for row in site.registry.rows(query, site.organization)]


def process(site: Site, engine: Engine) -> None:
    """What the processors of memory and features make of all stored events."""
    leads = Leads(engine.own_client("dynamodb"), "x")
    for page in engine.client("dynamodb").get_paginator("scan").paginate(TableName="Event"):
        for each in page["Items"]:
            if (item := decode_item(each)).get(
                "organization_id"
            ) == site.organization:  # others' may be malformed
                event = from_item(item)
                note_at_roots([event], leads.features, leads.rows)
                leads.both(event)


def run() -> dict[str, int]:
    forget()
    return erasure._parts().runner.run(datetime.now(UTC), FOREVER)


def finish() -> dict[str, int]:
    """Everything that an erasure takes, nights included."""
    run()
    two_nights(erasure._parts().runner.jobs, datetime.now(UTC))
    return run()


def live(site: Site, engine: Engine, word: str) -> tuple[str, dict[str, Any]]:
    """A person who orders, and writes much; returns the root of the person's leads, and the order."""
    address = f"{word}@example.com"
    bought = order(1, address, note=f"{word} says " * 300)
    site.send(bought)
    wishes = generic("form_submitted", objections=["price"], preferences={"size": "L"})
    site.send({**wishes, "identities": {"email": address}}, "generic")
    process(site, engine)
    return leads_of(site)[0], bought


def test_nothing_is_left_of_the_person_and_all_of_another(
    shop: Site, engine: Engine, lone_redis_url: str
) -> None:
    word, other = (f"canary{uuid.uuid4().hex[:10]}" for _ in range(2))
    lead, _ = live(shop, engine, word)
    shop.send(order(2, f"{other}@example.com"))
    before = stores_with(engine, other, lone_redis_url), leads_of(shop)[-1]
    rows = shop.registry.dump()
    assert stores_with(engine, word) >= {"Event", "s3://payloads"}
    assert stores_with(engine, lead) >= {"Event", "Feature", "Memory"}
    path = f"/v1/leads/{lead}/export"
    assert admin("GET", path)[0] == 404
    with pytest.MonkeyPatch.context() as patch:
        made_in_process(patch)
        forget()
        assert admin("POST", path)[0] == 202
    ours, theirs = (f"streakline/leads/{each}" for each in (shop.organization, "another"))
    assert [api(method, path, theirs)[0] for method in ("POST", "GET")] == [404, 404]
    assert api("GET", path, ours)[0] == 200
    with downloaded(admin("GET", path)[1]) as archive:
        names = archive.namelist()
        assert f"{word}@example.com" in archive.read("PostgreSQL.json").decode()
        assert any(word in archive.read(each).decode() for each in names if each.startswith("objects/"))
        assert json.loads(archive.read("Memory.json"))

    status, told, _ = admin("DELETE", f"/v1/leads/{lead}")
    assert status == 202
    run()
    assert admin("GET", f"/v1/erasures/{told['erasure_id']}")[1]["status"] == "open"
    assert stores_with(engine, word) == set(), "what leads to the person online is known no more"
    finish()
    assert admin("GET", f"/v1/erasures/{told['erasure_id']}")[1]["status"] == "finished"

    assert stores_with(engine, word) == set()
    assert stores_with(engine, lead) == set()
    assert not any(
        word in row or lead in row for table in shop.registry.dump().values() for row in map(str, table)
    )
    assert (stores_with(engine, other, lone_redis_url), leads_of(shop)[-1]) == before
    assert sum(map(len, shop.registry.dump().values())) < sum(map(len, rows.values()))
    certificate = admin("GET", f"/v1/erasures/{told['erasure_id']}")[1]["certificate"]
    removed = {each["store"]: each["removed"] for each in certificate["stores"]}
    assert removed["Event"] == 2
    assert removed["PostgreSQL"] >= 3
    assert removed["IdempotencyKeys"] >= 2
    assert removed["PayloadBucket"] >= 1
    assert admin("DELETE", f"/v1/leads/{lead}")[1]["erasure_id"] == told["erasure_id"]
    assert admin("GET", f"/v1/leads/{lead}/export")[0] == 410


def test_only_who_reached_an_erased_lead_learns_that_it_was_erased(shop: Site, engine: Engine) -> None:
    """Each route that names a lead, while the erasure is under way and after it."""
    lead, _ = live(shop, engine, f"canary{uuid.uuid4().hex[:10]}")
    ours, theirs = (f"streakline/leads/{each}" for each in (shop.organization, "another"))
    handlers = {"PrivacyApi": privacy_api, "LeadsApi": leads_api, "IdentityApi": identity_api}

    def ask(key: str, of: str, group: str) -> tuple[int, str]:
        route = next(each for each in openapi.ROUTES if each.key == key)
        body = {"leads": [of, "other"], "reason": "one person"} if route.path.endswith("/merges") else None
        method, path = key.replace("{lead_id}", of).split(" ")
        told = api(method, path, group, body=body, handler=handlers[route.api].handler)
        return told[0], told[2]

    keys = [each.key for each in openapi.ROUTES if "{lead_id}" in each.path] + ["POST /v1/leads/merges"]
    assert len(keys) >= 8
    assert ask("GET /v1/leads/{lead_id}/features", lead, ours)[0] == 200
    assert api("DELETE", f"/v1/leads/{lead}", ours)[0] == 202
    for finish_it in (forget, finish):
        finish_it()
        forget()
        for key in keys:
            for group in (ours, "streakline/admin"):
                assert ask(key, lead, group)[0] == (202 if key.startswith("DELETE") else 410), (key, group)
            assert ask(key, lead, theirs) == ask(key, "none", theirs), key
            assert ask(key, lead, theirs)[0] == 404, key


def test_a_webhook_that_comes_again_makes_no_lead_until_that_is_lifted(shop: Site, engine: Engine) -> None:
    word = f"canary{uuid.uuid4().hex[:10]}"
    lead, bought = live(shop, engine, word)
    admin("DELETE", f"/v1/leads/{lead}")
    finish()
    consumer = shop.consumer
    object.__setattr__(consumer, "erased", fresh())
    shop.send(bought)  # a redelivery, a redrive, or a re-import
    again = order(3, f"{word}@example.com", at=datetime.now(UTC))
    consumer.handle(shop.message(again), datetime.now(UTC))
    assert leads_of(shop) == []
    assert stores_with(engine, word) == set()

    body = {"organization_id": shop.organization, "email": f"{word}@EXAMPLE.com"}
    assert api("POST", "/v1/leads/lift", f"streakline/leads/{shop.organization}", body=body)[0] == 403
    status, told, _ = admin("POST", "/v1/leads/lift", body)
    assert (status, told["lifted"] >= 2) == (200, True)  # the address, and the shop's id of the customer
    object.__setattr__(consumer, "erased", fresh())
    shop.send(bought)
    assert leads_of(shop) == [], "what was before never comes back"
    later = order(4, f"{word}@example.com", at=datetime.now(UTC) + timedelta(seconds=1))
    consumer.handle(shop.message(later), datetime.now(UTC) + timedelta(seconds=2))
    assert len(leads_of(shop)) == 1


def test_a_sender_without_a_number_is_forgotten_and_comes_again_when_that_is_lifted(
    shop: Site, engine: Engine
) -> None:
    word = f"canary{uuid.uuid4().hex[:10]}"

    def write(number: int, seconds: int = 0) -> None:
        at = datetime.now(UTC) + timedelta(seconds=seconds)
        sender = {"from": None, "from_user_id": f"DE.{word}"}
        message = text("hello", number, timestamp=str(int(at.timestamp())), **sender)
        object.__setattr__(shop.consumer, "erased", fresh())
        shop.consumer.handle(shop.message(whatsapp(message), "whatsapp"), at)

    write(1)
    (lead,) = leads_of(shop)
    process(shop, engine)
    admin("DELETE", f"/v1/leads/{lead}")
    finish()
    write(2)
    assert leads_of(shop) == []
    assert stores_with(engine, word) == set()
    assert word not in str(shop.registry.dump())
    named = {"organization_id": shop.organization, "whatsapp": f"DE.{word}"}
    assert admin("POST", "/v1/leads/lift", named)[1]["lifted"] == 2  # the id, and the lead
    write(3, seconds=2)
    assert len(leads_of(shop)) == 1


def test_leads_that_were_merged_are_one_person(shop: Site, engine: Engine) -> None:
    word = f"canary{uuid.uuid4().hex[:10]}"
    one, two = f"{word}1@example.com", f"{word}2@example.com"
    shop.send(order(1, one))
    shop.send(order(2, two))
    first, second = leads_of(shop)
    shop.registry.store.merge_by_hand(
        None, (first, second), {"reason": f"{word} said so", "by": "op"}, unite=False, now=NOW
    )
    shop.consumer.handle({"command": "announce"}, NOW)
    process(shop, engine)
    assert api("DELETE", f"/v1/leads/{second}", "streakline/leads/another")[0] == 404
    assert api("DELETE", f"/v1/leads/{second}", f"streakline/leads/{shop.organization}")[0] == 202
    finish()
    for each in (word, first, second):
        assert stores_with(engine, each) == set()
        assert each not in str(shop.registry.dump())
    assert admin("GET", f"/v1/leads/{first}/export")[0] == 410


def test_a_lead_that_was_made_meanwhile_is_found_by_the_next_sweep(
    shop: Site, engine: Engine, lone_redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = f"canary{uuid.uuid4().hex[:10]}"
    lead, bought = live(shop, engine, word)
    monkeypatch.setenv("SETTLE_SECONDS", "60")
    admin("DELETE", f"/v1/leads/{lead}")
    assert run()["open"] == 1
    Redis(lone_redis_url).call("FLUSHALL")
    shop.send({**bought, "id": 9})  # by a process that knows nothing of it yet: a lead of a new id
    assert leads_of(shop)
    made = erasure._parts().runner
    assert made.run(datetime.now(UTC) + timedelta(seconds=61), FOREVER)["open"] == 1
    assert leads_of(shop) == []
    assert stores_with(engine, word) == set()
    two_nights(made.jobs, datetime.now(UTC) + timedelta(seconds=61))
    assert made.run(datetime.now(UTC) + timedelta(seconds=62), FOREVER)["finished"] == 1


def consumer_of(shop: Site, engine: Engine) -> None:
    """Let the consumer of webhooks know what is erased now, and begin erasures."""
    registry: Registry = shop.registry
    jobs = ErasureJobs(engine.client("dynamodb"), read_settings(ErasureSettings).erasures_table)
    erasing = LeadErasureStarter(IdentityEraser(database(registry.url)), jobs, fresh())
    object.__setattr__(shop.consumer, "erased", fresh())
    object.__setattr__(shop.consumer, "erasing", erasing)


def redact(customer: Any, *orders: Any) -> dict[str, Any]:
    """https://shopify.dev/docs/apps/build/compliance/privacy-law-compliance"""
    return {
        "shop_id": 954889,
        "shop_domain": "acme.myshopify.com",
        "customer": customer,
        "orders_to_redact": list(orders),
    }


@pytest.mark.parametrize(
    "way",
    [
        "customer",
        "address",
        "order",
        "text",
    ],
)
def test_a_shop_s_request_erases_the_lead_of_its_organization_alone(
    shop: Site, engine: Engine, way: str
) -> None:
    word, other = (f"canary{uuid.uuid4().hex[:10]}" for _ in range(2))
    address = f"{word}@example.com"
    lead, bought = live(shop, engine, word)
    shop.send(order(2, f"{other}@example.com"))
    own = shop.organization
    shop.organization = f"{own}-neighbour"
    shop.send(bought)
    (neighbour,) = leads_of(shop)
    shop.organization = own
    consumer_of(shop, engine)
    asked = {
        "customer": redact({"id": bought["customer"]["id"], "email": None, "phone": "555-625-1199"}, 299938),
        "address": redact({"email": address.upper()}),
        "order": redact(None, bought["id"], {"odd": 1}),
        "text": {
            **redact({"id": bought["customer"]["id"]}),
            "topic": "customers/redact",
            "orders_to_redact": "1",
        },
    }[way]
    for _ in range(2):  # a vendor repeats itself
        shop.consumer.handle(shop.message(asked, topic="customers/redact", is_signed=True), datetime.now(UTC))
        consumer_of(shop, engine)
    assert run()["open"] == 1
    assert lead not in leads_of(shop)
    assert len(leads_of(shop)) == 1, "the other customer"
    assert stores_with(engine, lead) <= {"Erasures"}
    assert stores_with(engine, neighbour) & {"Event", "s3://payloads"}, (
        "a payload lies here or there, by its size"
    )
    assert finish()["finished"] == 1
    assert stores_with(engine, lead) == set()
    assert stores_with(engine, other) & {"Event", "s3://payloads"}
    shop.send(bought)
    assert len(leads_of(shop)) == 1, "a redelivery of the order makes no lead"
    status, told, _ = admin("POST", "/v1/leads/lift", {"organization_id": own, "email": address})
    assert (status, told["lifted"] >= 1) == (200, True)


def test_a_customer_whom_nobody_knows_is_not_made_by_a_late_order(shop: Site, engine: Engine) -> None:
    word = f"canary{uuid.uuid4().hex[:10]}"
    bought = order(1, f"{word}@example.com")
    consumer_of(shop, engine)
    asked = redact({"id": bought["customer"]["id"], "email": f"{word}@example.com"}, 1)
    shop.consumer.handle(shop.message(asked, topic="customers/redact"), datetime.now(UTC))
    consumer_of(shop, engine)
    shop.send(bought)
    assert leads_of(shop) == []
    assert run()["open"] == 1
    assert finish()["finished"] == 1
    shop.consumer.handle(shop.message(redact({"email": f"{word}@example.com"})), datetime.now(UTC))
    assert run() == {"finished": 0, "open": 0, "late": 0}, "nobody is known, and there is nothing to do"


@pytest.mark.parametrize("named", ["unknown customer", "email", "no email"])
def test_nobody_else_of_a_household_is_erased_by_its_number(shop: Site, engine: Engine, named: str) -> None:
    word, phone = f"canary{uuid.uuid4().hex[:10]}", "+1 650 555 1234"
    for number in range(4):
        bought = order(number + 1, f"{word}{number}@example.com")
        shop.send({**bought, "customer": {**bought["customer"], "phone": phone}})
    before = leads_of(shop)
    assert len(before) == 4, "the first one has the number; customers of other ids are others"
    consumer_of(shop, engine)
    customers: dict[str, dict[str, Any]] = {
        "unknown customer": {"id": 5, "email": f"{word}2@example.com"},
        "email": {"email": f"{word}2@example.com"},
        "no email": {"id": 5},
    }
    asked = redact({**customers[named], "phone": phone})
    shop.consumer.handle(shop.message(asked, topic="customers/redact"), datetime.now(UTC))
    consumer_of(shop, engine)
    run()
    gone = [] if named == "no email" else [before[2]]
    assert leads_of(shop) == [each for each in before if each not in gone]
    late = order(20, f"{word}1@example.com", at=datetime.now(UTC))
    late["customer"]["phone"] = phone
    shop.consumer.handle(shop.message(late), datetime.now(UTC))
    assert any(each.object_id == "20" for each in shop.of_source("ecommerce")), "they go on buying"
    finish()


def test_an_organization_that_asks_again_gets_the_same_answer_and_no_other_one_does(
    shop: Site, engine: Engine
) -> None:
    """Also when nobody knows the lead any more, and by each of the ids that were one person."""
    word = f"canary{uuid.uuid4().hex[:10]}"
    shop.send(order(1, f"{word}1@example.com"))
    shop.send(order(2, f"{word}2@example.com"))
    leads = leads_of(shop)
    shop.registry.store.merge_by_hand(
        None, (leads[0], leads[1]), {"reason": "one person", "by": "op"}, unite=False, now=NOW
    )
    mine, other = f"streakline/leads/{shop.organization}", f"streakline/leads/{shop.organization}x"
    status, told, _ = api("DELETE", f"/v1/leads/{leads[0]}", mine)
    assert (status, told["status"]) == (202, "open")
    for go_on, state in ((lambda: None, "open"), (run, "open"), (finish, "finished")):
        go_on()
        forget()
        for lead in leads:
            answers = [api("DELETE", f"/v1/leads/{lead}", *groups) for groups in ([mine], [other, mine])]
            assert answers == [admin("DELETE", f"/v1/leads/{lead}")] * 2
            status, again, _ = answers[0]
            assert (status, again["erasure_id"], again["status"]) == (202, told["erasure_id"], state)
            assert ("certificate" in again) == (state == "finished")
            refused = [
                api("DELETE", f"/v1/leads/{lead}", each) for each in (other, "streakline/leads/another")
            ]
            assert [each[0] for each in refused] == [404, 404]
            assert refused[0] == api("DELETE", "/v1/leads/nobody", other), "as of a lead that never was"
    stored = json.dumps(engine.client("dynamodb").scan(TableName="Erasures")["Items"])
    assert not any(each in stored for each in (shop.organization, word, *leads)), "nothing readable stays"
    body = {"organization_id": shop.organization, "email": f"{word}1@example.com"}
    assert admin("POST", "/v1/leads/lift", body)[0] == 200
    forget()
    assert api("DELETE", f"/v1/leads/{leads[0]}", mine)[0] == 404
