"""Forms at POST /v1/hooks: a page of the organization sends them, in any way that a browser has, and not too many."""

import gzip
import json
from contextlib import suppress
from typing import Any

import pytest

from ingest.leads.hooks import HookRequest
from ingest.leads.hooks_api import form_fields
from ingest.leads.lead_accept import open_payload, read_envelope
from ingest.web.caller import ApiError
from tests.support.engine import Engine
from tests.support.hook_site import NOW, REFUSED, HookSite, opened

ORIGIN = "https://acme.example"


@pytest.fixture
def site(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> HookSite:
    return HookSite(engine, monkeypatch)


FORM = {
    "Email": "ada@example.com",
    "tel": "+1 650 555 1234",
    "message": "It is expensive",
    "form_id": "contact",
}
MULTIPART = (
    b'--x\r\nContent-Disposition: form-data; name="Email"\r\n\r\nada@example.com\r\n'
    b'--x\r\nContent-Disposition: form-data; name="tel"\r\n\r\n+1 650 555 1234\r\n'
    b'--x\r\nContent-Disposition: form-data; name="message"\r\n\r\nIt is expensive\r\n'
    b'--x\r\nContent-Disposition: form-data; name="form_id"\r\n\r\ncontact\r\n'
    b'--x\r\nContent-Disposition: form-data; name="cv"; filename="a.pdf"\r\n\r\n\xff\xfe\r\n--x--\r\n'
)  # fmt: skip
URLENCODED = b"Email=ada%40example.com&tel=%2B1+650+555+1234&message=It+is+expensive&form_id=contact"
FORMS = [
    ("application/x-www-form-urlencoded", URLENCODED),
    ("multipart/form-data; boundary=x", MULTIPART),
    ("application/json; charset=utf-8", json.dumps(FORM).encode()),
    ("application/json", json.dumps({"form_id": "contact", "fields": FORM}).encode()),
]


def form(site: HookSite, body: bytes, content_type: str = FORMS[0][0], **more: Any) -> tuple[int, Any]:
    headers = {"content-type": content_type, "origin": ORIGIN, **more.pop("headers", {})}
    return site.send("web_form", body, headers, **more)


def test_a_form_comes_in_however_a_browser_writes_it_and_a_double_click_is_one(site: HookSite) -> None:
    site.add("web_form", origins=(ORIGIN,))
    for content_type, body in FORMS:
        assert form(site, body, content_type) == (200, {"accepted": 1}), content_type
        assert site.headers["access-control-allow-origin"] == ORIGIN
    messages = site.queued()
    (one,) = {tuple(opened(each)) for each in messages}
    assert [kind for _, kind in one] == ["form_submitted"]
    assert messages[0]["payload"] == {
        "form_id": "contact",
        "fields": {"email": "ada@example.com", "phone": "+1 650 555 1234", "message": "It is expensive"},
    }
    site.seconds += 86_400
    form(site, URLENCODED)
    assert opened(site.queued()[0]) != [*one], "a day later it is another"


def test_a_page_can_read_why_its_form_is_refused(site: HookSite) -> None:
    site.add("web_form", origins=(ORIGIN,))
    for body, status in ((b"{}", 422), (b"{", 400)):
        assert form(site, body, "application/json")[0] == status
        assert site.headers["access-control-allow-origin"] == ORIGIN
    assert form(site, b"{}", "application/json", headers={"origin": "https://evil.example"}) == REFUSED
    assert "access-control-allow-origin" not in site.headers


def test_only_pages_of_the_organization_send_forms_and_no_form_says_who_the_customer_is(
    site: HookSite,
) -> None:
    site.add("web_form", origins=(ORIGIN,))
    elsewhere = {"origin": "https://evil.example"}
    assert form(site, URLENCODED, headers=elsewhere) == REFUSED
    assert form(site, URLENCODED, headers={"origin": ""}) == REFUSED
    by_page = {"origin": "", "referer": f"{ORIGIN}/contact?x=1"}
    assert form(site, URLENCODED + b"&customer_id=7", headers=by_page)[0] == 200
    assert form(site, URLENCODED, organization="nobody") == REFUSED
    (message,) = site.queued()
    sent = read_envelope(message, "USD", NOW)
    ((event, _),) = open_payload(sent.payload, sent, NOW).events
    assert {each.channel for each in event.identities} == {"email", "phone"}
    for headers, status in (({"origin": ORIGIN}, 204), (elsewhere, 401), ({}, 401)):
        assert site.call("OPTIONS", "web_form", site.organization, headers=headers)[0] == status
    assert site.call("OPTIONS", "ecommerce", site.organization, headers={"origin": ORIGIN})[0] == 401


def test_a_page_that_hides_its_origin_is_told_how_to_show_it_whether_there_is_a_hook_or_not(
    site: HookSite,
) -> None:
    site.add("web_form", origins=(ORIGIN,))
    told = []
    for headers in ({"origin": "null"}, {"origin": "null", "referer": f"{ORIGIN}/contact"}):
        for organization in (site.organization, "nobody"):
            told.append(form(site, URLENCODED, headers=headers, organization=organization))
            assert site.headers["access-control-allow-origin"] == "null", "a script can read it"
            options = site.call("OPTIONS", "web_form", organization, headers=headers)
            assert options == told[0]
    assert told == told[:1] * 4
    status, refusal = told[0]
    assert (status, refusal["error"]["code"]) == (401, "unauthorized")
    for word in ("Origin: null", "referrer policy", "no-referrer", "strict-origin-when-cross-origin"):
        assert word in refusal["error"]["message"]
    assert site.queued() == []


def test_a_form_that_holds_nobody_or_is_none_is_refused_and_a_robot_is_told_nothing(site: HookSite) -> None:
    site.add("web_form", origins=(ORIGIN,), per_minute=1000)
    for body, content_type, status in (
        (b"message=hello", FORMS[0][0], 422),
        (b"email=%ff", FORMS[0][0], 422),
        (b"\xff", FORMS[0][0], 422),
        (b"email=a%40b.c&email=d%40b.c", FORMS[0][0], 422),
        (b"email=a@b.c" + b"&x=1" * 200, FORMS[0][0], 400),
        (MULTIPART[:40], FORMS[1][0], 422),
        (b"no parts", "multipart/form-data", 400),
        (b"[1]", "application/json", 422),
        (b'{"email": {"a": 1}}', "application/json", 422),
        (b"x" * 200_000, FORMS[0][0], 413),
        (b"email=a@b.c", "text/plain", 415),
        (gzip.compress(URLENCODED), FORMS[0][0], 422),
    ):
        assert form(site, body, content_type)[0] == status, body[:30]
    assert form(site, URLENCODED + b"&_gotcha=buy") == (200, {"accepted": 1})
    assert site.queued() == []


def test_a_page_builder_s_form_comes_in_and_a_refused_one_lists_the_names_that_are_read(
    site: HookSite,
) -> None:
    site.add("web_form", origins=(ORIGIN,), per_minute=1000)
    for body, content_type in (
        (b"your-email=ada%40example.com&name=J%FCrgen", FORMS[0][0]),
        (b"email[]=ada%40example.com&email[]=ADA%40example.com", FORMS[0][0]),
        (b'{"data": {"E-mail Address": "ada@example.com", "topics": ["a", "b"]}}', "application/json"),
    ):
        assert form(site, body, content_type) == (200, {"accepted": 1}), body
    assert len(site.queued()) == 3
    status, told = form(site, b"mail-address-of-yours=x&name=%FC")
    (problem,) = told["error"]["details"]
    assert (status, problem["field"]) == (422, "payload.fields")
    assert "your-email" in problem["reason"]
    assert "phone_number" in problem["reason"]
    assert form(site, b"fields[_gotcha]=buy&email=ada%40example.com") == (200, {"accepted": 1})
    assert site.queued() == [], "a robot's"


def test_an_address_sends_ten_forms_a_minute_whatever_process_counts(
    site: HookSite, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("web_form", origins=(ORIGIN,))
    told = [form(site, f"email=p{n}@example.com".encode())[0] for n in range(12)]
    assert told == [200] * 10 + [429] * 2
    other = HookSite(engine, monkeypatch)
    other.organization = site.organization
    assert form(other, URLENCODED)[0] == 429
    assert form(other, URLENCODED, address="2001:db8::1")[0] == 200
    neighbours = [form(other, URLENCODED, address=f"2001:db8::{n}")[0] for n in range(2, 20)]
    assert neighbours == [200] * 9 + [429] * 9, "one network of IPv6 is one address"
    other.seconds += 60
    assert form(other, URLENCODED)[0] == 200


def test_a_browser_goes_on_to_the_page_that_says_thanks(site: HookSite) -> None:
    site.add("web_form", origins=(ORIGIN,), thanks=f"{ORIGIN}/thanks")
    assert form(site, URLENCODED)[0] == 303
    assert site.headers["location"] == f"{ORIGIN}/thanks"
    assert form(site, FORMS[2][1], FORMS[2][0])[0] == 200


def test_nested_parts_of_a_form_do_not_bring_the_process_down() -> None:
    nested = b"".join(
        b"--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n" % (n, n + 1) for n in range(1500)
    )
    request = HookRequest({"content-type": "multipart/form-data; boundary=b0"}, nested, "")
    with suppress(ApiError):
        assert form_fields(request) == {}
