"""Signatures of outgoing webhooks: the standard's vectors, its own library, and a rotation."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from ingest.leads.sources.generic import SIGNATURE
from rules.leads.webhook_signatures import hmac_check, is_signed, read_delivery
from rules.outgoing.webhooks import key_of, secret_of, signature, signed_headers

# github.com/standard-webhooks/standard-webhooks: the vector of its libraries' tests, and the example of its text.
VECTORS = [
    (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
]
SECRETS = st.binary(min_size=24, max_size=64).map(secret_of)


@pytest.mark.parametrize(("secret", "message", "seconds", "body", "expected"), VECTORS)
def test_the_vectors_of_the_standard(
    secret: str, message: str, seconds: int, body: bytes, expected: str
) -> None:
    assert signature(secret, message, seconds, body) == expected


@given(SECRETS, st.dictionaries(st.text(max_size=5), st.integers()), st.integers(0, 10**6))
def test_the_standard_s_own_library_takes_what_we_sign_and_we_what_it_signs(
    secret: str, content: dict[str, int], number: int
) -> None:
    now, body = datetime.now(UTC), json.dumps(content).encode()
    headers = signed_headers([secret], f"msg_{number}", now, body)
    assert Webhook(secret).verify(body, headers) == content
    theirs = Webhook(secret).sign(f"msg_{number}", now, body.decode())
    assert theirs == headers["webhook-signature"]
    delivery = read_delivery(SIGNATURE, headers, body)
    assert delivery is not None and is_signed(delivery, [secret], hmac_check(SIGNATURE))


def test_while_a_secret_is_rotated_a_receiver_with_either_of_the_two_takes_the_message() -> None:
    old, new, other = (secret_of(bytes([number]) * 32) for number in range(3))
    headers = signed_headers([new, old], "msg_1", datetime.now(UTC), b"{}")
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (old, new):
        Webhook(secret).verify(b"{}", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(other).verify(b"{}", headers)


@given(SECRETS, st.sampled_from(["webhook-id", "webhook-timestamp", "body"]))
def test_nothing_of_a_message_can_be_changed(secret: str, what: str) -> None:
    headers, body = signed_headers([secret], "msg_1", datetime.now(UTC), b'{"a":1}'), b'{"a":1}'
    if what == "body":
        body = b'{"a":2}'
    else:
        headers[what] = headers[what][:-1] + str((int(headers[what][-1]) + 1) % 10)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers)


def test_a_secret_is_long_enough_and_base64() -> None:
    with pytest.raises(ValueError, match="24 to 64"):
        secret_of(b"short")
    with pytest.raises(ValueError, match="base64") as refused:
        key_of("whsec_not base64!")
    assert "not base64!" not in str(refused.value)
    assert key_of(secret_of(b"k" * 32)) == b"k" * 32
