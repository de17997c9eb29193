"""POST /v1/hooks: what a vendor signed comes in once, and nothing else comes in at all."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from ingest.leads import hooks, sources
from ingest.leads.hooks import CACHE_SECONDS, REREAD_SECONDS, STRANGERS_BURST, STRANGERS_PER_SECOND
from ingest.web.api import REQUESTS_PER_MINUTE_OF_ADDRESS
from rules.leads.hooks import HookSecret, challenge_token, rotate_hook
from tests.support.engine import Engine
from tests.support.hook_site import NOW, REFUSED, SIGNED, HookSite, opened
from tests.support.vendor_bodies import as_sent, sample_of
from tests.support.webhook_senders import headers_of, secret_of


@pytest.fixture
def site(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> HookSite:
    return HookSite(engine, monkeypatch)


@pytest.mark.parametrize("source", SIGNED)
def test_what_a_vendor_signs_is_queued_and_a_delivery_that_comes_again_is_the_same_event(
    site: HookSite, source: str
) -> None:
    site.add(source)
    assert [site.signed(source) for _ in range(2)] == [(200, {"accepted": 1})] * 2
    first, again = site.queued()
    assert opened(first) == opened(again)
    assert len(opened(first)) == 1
    assert (first["organization_id"], first["source"]) == (site.organization, source)
    assert first["payload"] == sample_of(source, "t", NOW), "nothing is added to what the vendor sent"


@pytest.mark.parametrize("source", SIGNED)
def test_whatever_does_not_fit_is_the_same_401_and_nothing_is_stored(site: HookSite, source: str) -> None:
    theirs = site.add(source)
    site.add(source, "b", f"{site.organization}-other")
    body = as_sent(source, sample_of(source, "t", site.now))
    right = headers_of(source, body, theirs, site.now)
    flipped = bytes([body[0], body[1] ^ 1, *body[2:]])
    name = sources.source_named(source).signature.header  # type: ignore[union-attr]
    attempts: list[tuple[str, bytes, dict[str, str], str]] = [
        (source, flipped, right, site.organization),
        (source, body, right, f"{site.organization}-other"),
        (source, body, right, "nobody"),
        (source, body, right, "no/body"),
        ("newsletter", body, right, site.organization),
        ("__init__", body, right, site.organization),
        (source, body, {}, site.organization),
        (source, body, right | {name: ""}, site.organization),
        (source, body, right | {name: right[name][:-3]}, site.organization),
        (source, body, headers_of(source, body, secret_of(source, "b")[0], site.now), site.organization),
    ]
    for each, sent, headers, organization in attempts:
        answered = site.send(each, sent, headers, organization)
        assert answered in (
            REFUSED,
            (404, {"error": {"code": "not_found", "message": "there is no such route"}}),
        )
    scheme = sources.source_named(source).signature
    if scheme and scheme.timestamp_header:
        for seconds in (-301, 301):
            old = headers_of(source, body, theirs, site.now + timedelta(seconds=seconds))
            assert site.send(source, body, old) == REFUSED
    assert site.queued() == []
    assert site.send(source, body, right)[0] == 200


def test_a_secret_is_changed_without_a_gap_and_the_old_one_ends(site: HookSite) -> None:
    old = site.add("ecommerce")
    assert site.signed("ecommerce", secret=old)[0] == 200
    (new, checked), (_, newest) = secret_of("ecommerce", "b"), secret_of("ecommerce", "c")
    assert site.signed("ecommerce", secret=new) == REFUSED
    hook = site.store.get(site.organization, "ecommerce")
    site.store.replace(rotate_hook(hook, checked, site.now, timedelta(hours=1)))
    site.seconds += REREAD_SECONDS
    assert [site.signed("ecommerce", secret=each)[0] for each in (new, old)] == [200, 200]
    site.seconds += 3601
    assert site.signed("ecommerce", secret=old) == REFUSED
    assert site.signed("ecommerce", secret=new)[0] == 200
    hook = rotate_hook(site.store.get(site.organization, "ecommerce"), newest, site.now, timedelta())
    assert hook.secrets == (HookSecret(newest),), "an overlap of nothing ends the old one at once"
    site.store.remove(site.organization, "ecommerce")
    site.seconds += CACHE_SECONDS
    assert site.signed("ecommerce", secret=new) == REFUSED


def flood(site: HookSite, names: int = 100) -> list[int]:
    """Ask for hooks that nobody has, each from another address."""
    return [
        site.signed("ecommerce", organization=f"nobody{number}", address=f"198.51.100.{number}")[0]
        for number in range(names)
    ]


def test_a_hook_is_read_once_a_minute_and_strangers_cost_little_and_delay_nobody_who_fits(
    site: HookSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in ("ecommerce", "whatsapp"):
        site.add(source)
    for _ in range(5):
        site.signed("ecommerce")
    assert len(site.reads) == 1
    for _ in range(5):  # wrong signatures: one reading in two seconds
        site.signed("ecommerce", secret="wrong")
    site.seconds += CACHE_SECONDS
    site.reads.clear()
    assert set(flood(site)) == {401, 503}
    assert (len(site.reads), len(site.lists)) == (STRANGERS_BURST, 2)
    assert [site.signed(each)[0] for each in ("ecommerce", "whatsapp")] == [200, 200]
    site.seconds += REREAD_SECONDS
    assert Counter(flood(site))[401] == REREAD_SECONDS * STRANGERS_PER_SECOND
    monkeypatch.setattr(hooks, "NAMES_MAX", 30)
    for _ in range(4):
        site.seconds += 3
        flood(site, 12)
    assert len(site.known._hooks) <= 30


def test_nobody_learns_under_a_flood_which_hooks_there_are(site: HookSite) -> None:
    """Two names are asked in turn, a real one and an invented one, at the same moments beside the same flood."""
    site.add("ecommerce")
    answers: dict[str, list[tuple[int, Any]]] = {}
    for name in (site.organization, f"{site.organization}-invented"):
        site.seconds += 3600
        told = answers.setdefault(name, [])
        for pause in (0.0, 0.1, 1.0, REREAD_SECONDS, CACHE_SECONDS):
            assert site.signed("ecommerce")[0] == 200
            told.append(site.signed("ecommerce", secret="wrong", organization=name))
            flood(site, 30)
            told.append(site.signed("ecommerce", secret="wrong", organization=name))
            site.seconds += pause
    real, invented = answers.values()
    assert real == invented
    assert real[0] == REFUSED


@pytest.mark.parametrize("addresses", [["192.0.2.1"], ["2001:db8::1", "2001:db8:0:0:ffff::9"]])
def test_one_sender_does_not_use_up_what_others_need(site: HookSite, addresses: list[str]) -> None:
    for number in range(60):
        site.signed("ecommerce", organization=f"nobody{number}", address=addresses[number % len(addresses)])
    site.add("ecommerce")  # a hook that is not on the list yet
    assert site.signed("ecommerce", address="203.0.113.9")[0] == 200
    assert site.signed("ecommerce", secret="wrong", organization="another", address=addresses[0])[0] == 503


def test_an_address_has_so_many_requests_a_minute_and_others_are_not_concerned(site: HookSite) -> None:
    site.add("ecommerce")
    body = as_sent("ecommerce", sample_of("ecommerce", "t", NOW))
    headers = headers_of("ecommerce", body, secret_of("ecommerce", "a")[0], site.now)
    told = Counter(
        site.send("ecommerce", body, headers, "nobody", address=f"2001:db8:a::{number:x}")[0]
        for number in range(REQUESTS_PER_MINUTE_OF_ADDRESS + 100)
    )
    assert told[429] == 100
    assert site.headers["retry-after"] == str(60 - site.now.second)
    assert site.send("ecommerce", body, headers, address="2001:db8:a:1::1")[0] == 200
    assert site.send("ecommerce", body, headers, address="2001:db8:a::1")[0] == 429, "also one that would fit"
    site.seconds += 60
    assert site.send("ecommerce", body, headers, address="2001:db8:a::1")[0] == 200


def test_a_new_hook_works_though_the_list_of_hooks_is_old_or_cannot_be_read(
    site: HookSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.signed("ecommerce") == REFUSED  # the list is read, and is empty
    site.add("ecommerce")
    site.seconds += REREAD_SECONDS
    assert site.signed("ecommerce")[0] == 200

    def fails() -> list[tuple[str, str]]:
        raise EndpointConnectionError(endpoint_url="x")

    monkeypatch.setattr(site.store, "names", fails)
    site.seconds += CACHE_SECONDS
    assert site.signed("ecommerce")[0] == 200
    assert site.signed("ecommerce", organization="nobody") == REFUSED


def test_meta_reads_its_number_back_by_the_token_alone(site: HookSite) -> None:
    secret = site.add("whatsapp")
    query = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}

    def ask(**more: str) -> tuple[int, Any]:
        return site.call("GET", "whatsapp", site.organization, queryStringParameters={**query, **more})

    assert ask(**{"hub.verify_token": challenge_token(secret)}) == (200, "1158201444")
    assert site.headers["content-type"] == "text/plain"
    for wrong in ({"hub.verify_token": "x"}, {"hub.verify_token": secret}, {}, {"hub.verify_token": "ä"}):
        assert ask(**wrong) == REFUSED
    right = {"hub.verify_token": challenge_token(secret)}
    assert ask(**right, **{"hub.mode": "unsubscribe"}) == REFUSED
    assert ask(**right, **{"hub.challenge": "a\nb"}) == REFUSED
    assert (
        site.call("GET", "ecommerce", site.organization, queryStringParameters={**query, **right}) == REFUSED
    )
