"""What a source proves of a person, and what somebody only claims."""

from typing import Any

import pytest

from ingest.leads.readers import DecodeError
from rules.leads.identity import Identity, in_order
from tests.support.webhooks import FORM, GENERIC, MAIL, ORDER, decode, text, whatsapp


def proven(source: str, payload: Any) -> dict[str, bool]:
    (event,) = decode(source, payload)
    return {each.channel: each.is_verified for each in event.identities}


def test_a_form_proves_nothing() -> None:
    assert proven("web_form", FORM) == {"email": False, "phone": False, "cookie": False}
    assert proven("web_form", {**FORM, "customer_id": "7"})["customer"] is False


def test_a_shop_s_customer_is_proven_and_a_guest_s_contact_is_not() -> None:
    assert set(proven("ecommerce", ORDER).values()) == {True}
    assert proven("ecommerce", {**ORDER, "customer": None, "email": "guest@example.com"}) == {"email": False}


@pytest.mark.parametrize("sender", ["16505551234", "+16505551234"])
def test_a_sender_of_whatsapp_is_proven(sender: str) -> None:
    payload = whatsapp({**text("hello"), "from": sender})
    assert proven("whatsapp", payload) == {"phone": True}
    assert decode("whatsapp", payload)[0].identities == (Identity("phone", "16505551234"),)


def test_the_recipient_of_a_mail_is_proven() -> None:
    assert proven("email_campaign", MAIL) == {"email": True}


def test_a_sender_in_our_own_format_says_what_is_only_claimed() -> None:
    who = {"customer": "7", "email": "ada@example.com"}
    assert proven("generic", {**GENERIC, "identities": who}) == {"customer": True, "email": True}
    claimed = {**GENERIC, "identities": who, "claimed": ["email"]}
    assert proven("generic", claimed) == {"customer": True, "email": False}
    with pytest.raises(DecodeError, match="claimed"):
        decode("generic", {**GENERIC, "claimed": "email"})


def test_what_is_proven_anywhere_in_an_event_is_proven() -> None:
    sure, claimed = Identity("email", "a@x"), Identity("email", "a@x", is_verified=False)
    assert sure == claimed
    for both in ([sure, claimed], [claimed, sure]):
        assert [each.is_verified for each in in_order(both)] == [True]
