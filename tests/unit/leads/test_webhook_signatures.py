"""Signatures as vendors make them: their own test vectors, and what must never pass."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.leads import sources
from ingest.leads.hooks import ecdsa_check, public_key
from local.leads.hooks import new_key_pair
from rules.hooks import OVERLAP, Hook, HookSecret, hook_from_text, hook_text, rotate_hook
from rules.leads.webhook_signatures import (
    AGE_SECONDS_MAX,
    SIGNATURES_MAX,
    Signature,
    SignedDelivery,
    challenge_token,
    hmac_check,
    is_fresh,
    is_signed,
    read_delivery,
)
from tests.support.webhook_senders import headers_of, secret_of


@dataclass(frozen=True)
class Vector:
    """A request that a vendor's own documentation or library publishes."""

    source: str
    secret: str
    headers: dict[str, str]
    body: bytes


VECTORS = [
    # GitHub signs as Meta does, and documents one: https://docs.github.com/webhooks, "validating deliveries".
    Vector(
        "whatsapp",
        "It's a Secret to Everybody",
        {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        b"Hello, World!",
    ),
    # https://github.com/sendgrid/sendgrid-python: the tests of its event webhook
    Vector(
        "email_campaign",
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
        {
            "x-twilio-email-event-webhook-signature": "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=",
            "x-twilio-email-event-webhook-timestamp": "1600112502",
        },
        b'[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address",'
        b'"sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",'
        b'"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0",'
        b'"smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n',
    ),
    # https://github.com/standard-webhooks/standard-webhooks: the vector of its libraries' tests
    Vector(
        "generic",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
    ),
]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SIGNED = [name for name in sources.names() if sources.source_named(name).signature]


def scheme_of(source: str) -> Signature:
    scheme = sources.source_named(source).signature
    assert scheme is not None
    return scheme


def passes(source: str, headers: dict[str, str], body: bytes, *secrets: str) -> bool:
    scheme = scheme_of(source)
    delivery = read_delivery(scheme, headers, body)
    check = ecdsa_check if scheme.algorithm == "ecdsa-sha256" else hmac_check(scheme)
    return delivery is not None and is_signed(delivery, secrets, check)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda each: each.source)
def test_a_vendor_s_own_vector_passes_and_with_one_bit_flipped_it_does_not(vector: Vector) -> None:
    assert passes(vector.source, vector.headers, vector.body, vector.secret)
    for place in range(len(vector.body)):
        flipped = bytearray(vector.body)
        flipped[place] ^= 1
        assert not passes(vector.source, vector.headers, bytes(flipped), vector.secret)
    for name, value in vector.headers.items():
        for place in range(len(value)):
            other = value[:place] + ("b" if value[place] in "aA" else "a") + value[place + 1 :]
            assert not passes(vector.source, vector.headers | {name: other}, vector.body, vector.secret)
        assert not passes(
            vector.source, {each: text for each, text in vector.headers.items() if each != name}, vector.body,
            vector.secret,
        )  # fmt: skip


@pytest.mark.parametrize(
    "damaged", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa", "whsec_ü", "whsec_a b", "\ud83d"]
)
def test_a_secret_that_was_damaged_by_hand_does_not_spoil_the_one_beside_it(damaged: str) -> None:
    vector = VECTORS[-1]
    assert passes(vector.source, vector.headers, vector.body, damaged, vector.secret)
    assert not passes(vector.source, vector.headers, vector.body, damaged)


@pytest.mark.parametrize("source", SIGNED)
@given(body=st.binary(max_size=64), place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_what_a_secret_signed_passes_by_that_secret_alone(
    source: str, body: bytes, place: int, bit: int
) -> None:
    (secret, checked), (_, other) = secret_of(source, "a"), secret_of(source, "b")
    headers = headers_of(source, body, secret, NOW)
    assert passes(source, headers, body, checked)
    assert passes(source, headers, body, other, checked), "two secrets are valid at once"
    assert not passes(source, headers, body, other)
    assert not passes(source, headers, body)
    changed = bytearray(body or b"\0")
    changed[place % len(changed)] ^= 1 << bit
    assert not passes(source, headers, bytes(changed), checked)


@pytest.mark.parametrize("source", SIGNED)
@given(junk=st.dictionaries(st.sampled_from(
    [each for name in SIGNED for each in (
        scheme_of(name).header, scheme_of(name).timestamp_header, scheme_of(name).id_header) if each]
), st.text(max_size=20)), body=st.binary(max_size=20))  # fmt: skip
def test_junk_in_headers_is_refused_and_raises_nothing(
    source: str, junk: dict[str, str], body: bytes
) -> None:
    assert not passes(source, junk, body, secret_of(source, "a")[1])


@given(st.integers(-2 * AGE_SECONDS_MAX, 2 * AGE_SECONDS_MAX))
def test_five_minutes_either_way_are_fresh(seconds: int) -> None:
    sent_at = int((NOW + timedelta(seconds=seconds)).timestamp())
    assert is_fresh(SignedDelivery(b"", (b"",), sent_at), NOW) is (abs(seconds) <= AGE_SECONDS_MAX)
    assert is_fresh(SignedDelivery(b"", (b"",)), NOW), "Shopify and WhatsApp sign no timestamp"


def test_several_signatures_may_come_and_not_many() -> None:
    vector = VECTORS[2]
    right, wrong = vector.headers["webhook-signature"], f"v1,{base64.b64encode(b'x' * 32).decode()}"
    for several in (f"{wrong} {right}", f"v1a,AAAA {right}", f"{right} v1,not-base64!"):
        assert passes("generic", vector.headers | {"webhook-signature": several}, vector.body, vector.secret)
    many = " ".join([wrong] * SIGNATURES_MAX + [right])
    assert not passes("generic", vector.headers | {"webhook-signature": many}, vector.body, vector.secret)


def test_an_id_with_a_dot_is_refused_because_it_would_move_what_is_signed() -> None:
    """`a.1.2.{}` is id a, time 1, body `2.{}`; and id a.1, time 2, body `{}`: one signature, two messages."""
    secret, _ = secret_of("generic", "a")
    headers = headers_of("generic", b"1.{}", secret, datetime.fromtimestamp(5, UTC), delivery="a")
    assert passes("generic", headers, b"1.{}", secret)
    moved = headers | {"webhook-id": "a.5", "webhook-timestamp": "1"}
    assert not passes("generic", moved, b"{}", secret)


def twins(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("webhook-", "svix-"): each for name, each in headers.items()}


def test_headers_by_svix_s_names_are_twins_of_the_standard_s_all_of_them_or_none() -> None:
    vector = VECTORS[2]
    standard, svix = vector.headers, twins(vector.headers)
    wrong = {"svix-signature": f"v1,{base64.b64encode(b'x' * 32).decode()}"}
    passing = [
        svix,
        svix | standard,
        svix | {"webhook-signature": ""},
        standard | wrong,
        svix | {"webhook-id": "msg_other", "webhook-timestamp": "5"},
    ]
    for headers in passing:
        assert passes("generic", headers, vector.body, vector.secret), headers
        delivery = read_delivery(scheme_of("generic"), headers, vector.body)
        assert delivery is not None
        assert delivery.delivery_id == vector.headers["webhook-id"], "the id that was signed"
    refused = [
        svix | wrong,
        svix | {"svix-id": "msg_other"},
        {name: each for name, each in svix.items() if name != "svix-id"}
        | {"webhook-id": standard["webhook-id"]},
        {name: each for name, each in standard.items() if name != "webhook-id"}
        | {"svix-id": svix["svix-id"]},
        {name.replace("svix-", "svix"): each for name, each in svix.items()},
    ]
    for headers in refused:
        assert not passes("generic", headers, vector.body, vector.secret), headers
    assert not passes("ecommerce", svix, vector.body, vector.secret)


@pytest.mark.parametrize("text", ["", "???", "AAAA", base64.b64encode(b"0" * 91).decode()])
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        public_key(text)
    with pytest.raises(ValueError):
        public_key(new_key_pair()[0])


NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
texts = st.text(max_size=8)
hooks = st.builds(
    Hook,
    texts,
    texts,
    st.lists(st.builds(HookSecret, texts), min_size=1, max_size=2).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
    st.none() | texts,
    texts,
    st.integers(1, 100),
)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 100)), max_size=8))
def test_however_often_it_changes_two_are_valid_and_the_one_before_until_it_ends(
    changes: list[tuple[int, int]],
) -> None:
    now, hook = NOW, Hook("acme", "generic", (HookSecret("0"),))
    before, ends = "0", NOW
    for number, (waited, overlap) in enumerate(changes, 1):
        now += timedelta(hours=waited)
        before, ends = hook.secrets[0].value, now + timedelta(hours=overlap)
        hook = rotate_hook(hook, str(number), now, timedelta(hours=overlap))
        for at in (now, ends - timedelta(microseconds=1), ends, ends + OVERLAP):
            old = (before,) if now <= at < ends else ()
            assert hook.valid(max(at, now)) == (str(number), *(old if at >= now and overlap else ()))
    assert len(hook.secrets) <= 2


@given(hooks)
def test_what_is_written_is_read(hook: Hook) -> None:
    assert hook_from_text(hook_text(hook)) == hook


@given(st.text() | st.recursive(st.none() | texts, st.lists).map(json.dumps))
def test_anything_else_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a hook's secret is not what"):
        hook_from_text(text)


# HMAC fills a key up with zero bytes, so a secret that ends in one has the token of that without.
SECRETS = st.text(st.characters(exclude_characters="\x00", codec="utf-8"))


@given(SECRETS, SECRETS)
def test_a_token_does_not_tell_its_secret(one: str, other: str) -> None:
    assert len(challenge_token(one)) == 32
    assert (challenge_token(one) == challenge_token(other)) is (one == other)
