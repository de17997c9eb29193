"""Receipts: what the service signed for a user's device, and nothing else (rule 16)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.event_body import EVENTS
from rules.engagement.events import InputRefused
from rules.engagement.offline import is_device, new_receipt, read_receipt

KEY, OTHER_KEY = "k" * 64, "o" * 64
NOW = datetime(2026, 6, 10, 12, 0, 0, 123000, tzinfo=UTC)
DEVICE = "phone-0001"
RECEIPT = new_receipt(KEY, "ann", DEVICE, NOW)


def reason(text: str, *keys: str, user: str = "ann", device: str = DEVICE) -> str:
    with pytest.raises(InputRefused) as told:
        read_receipt(text, keys or (KEY,), user, device)
    assert (told.value.code, told.value.field) == ("receipt_refused", "receipt")
    return told.value.reason.partition(":")[0]


@given(st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1)))  # noqa: DTZ001 (made aware below)
def test_a_receipt_tells_its_instant_to_the_millisecond_and_not_later(at: datetime) -> None:
    at = at.replace(tzinfo=UTC)
    text = new_receipt(KEY, "ann", DEVICE, at)
    assert timedelta() <= at - read_receipt(text, [KEY], "ann", DEVICE).issued_at < timedelta(milliseconds=1)
    assert len(text) <= EVENTS["properties"]["receipt"]["maxLength"]


@given(st.data())
def test_whatever_sign_is_changed_the_receipt_is_forged(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(RECEIPT) - 1))
    sign = data.draw(st.sampled_from("0123456789abcdef.٣ \n").filter(lambda each: each != RECEIPT[place]))
    assert reason(RECEIPT[:place] + sign + RECEIPT[place + 1 :]) == "is forged"


@pytest.mark.parametrize(
    "text", ["", RECEIPT + "\n", " " + RECEIPT, RECEIPT.upper(), RECEIPT + "." + RECEIPT]
)
def test_what_only_looks_like_it_is_forged(text: str) -> None:
    assert reason(text) == "is forged"


def test_another_user_s_or_device_s_receipt_is_foreign() -> None:
    assert reason(RECEIPT, user="bob") == "is foreign"
    assert reason(RECEIPT, device="phone-0002") == "is foreign"
    assert reason(RECEIPT, device="") == "is foreign"
    # What parts the two cannot be moved between them.
    assert (
        reason(new_receipt(KEY, "ann", "Aphone-0001", NOW), user="annA", device="phone-0001") == "is foreign"
    )


def test_receipts_of_older_and_announced_keys_hold_and_those_of_retired_ones_do_not() -> None:
    assert read_receipt(RECEIPT, [OTHER_KEY, KEY], "ann", DEVICE) == read_receipt(
        RECEIPT, [KEY], "ann", DEVICE
    )
    assert reason(RECEIPT, OTHER_KEY) == "is forged"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a" * 8, True),
        ("a" * 64, True),
        ("a" * 7, False),
        ("a" * 65, False),
        ("a b c d e", False),
        ("é" * 9, False),
    ],
)
def test_a_device_is_8_to_64_plain_signs(text: str, is_one: bool) -> None:
    assert is_device(text) is is_one
    assert not is_device(text + "\n")
