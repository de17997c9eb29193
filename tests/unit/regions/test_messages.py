"""Changes on their way: what is sent is what arrives, and a message has a size."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.regions.changes import (
    KEYS,
    LONG_BYTES,
    MESSAGE_BYTES_MAX,
    ItemChange,
    TooLarge,
    change_messages,
    change_text,
    changes_of,
)

values = st.recursive(
    st.one_of(
        st.text(max_size=20).map(lambda text: {"S": text}),
        st.integers().map(lambda number: {"N": str(number)}),
        st.binary(max_size=20).map(lambda data: {"B": data}),
        st.booleans().map(lambda flag: {"BOOL": flag}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda some: {"L": some}),
        st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3).map(lambda some: {"M": some}),
    ),
    max_leaves=5,
)
images = st.dictionaries(st.text(min_size=1, max_size=8), values, max_size=5)


@st.composite
def changes(draw: st.DrawFn) -> ItemChange:
    table = draw(st.sampled_from(sorted(KEYS)))
    key = {name: {"S": draw(st.text(max_size=8))} for name in KEYS[table]}
    image = draw(st.none() | images)
    return ItemChange(
        table, draw(st.integers(0, 3)), draw(st.integers(0, 2**60)), key, image, draw(st.booleans())
    )


def sent_as(changes: list[ItemChange]) -> list[str]:
    return list(change_messages(changes[0].epoch, map(change_text, changes))) if changes else []


@given(st.integers(0, 3), st.lists(changes(), max_size=8))
def test_what_is_sent_arrives_in_its_order(epoch: int, some: list[ItemChange]) -> None:
    sent = [replace(each, epoch=epoch) for each in some]
    assert [each for text in sent_as(sent) for each in changes_of(json.loads(text))] == sent


def test_many_changes_are_several_messages_and_a_long_one_is_compressed() -> None:
    key = {"user_id": {"S": "ann"}, "event_id": {"S": "e"}}
    small = ItemChange("BPEvents", 1, 1, key, {"text": {"S": "x" * 1000}}, is_new=True)
    texts = sent_as([small] * 500)
    assert len(texts) > 1
    assert all(len(each) <= MESSAGE_BYTES_MAX for each in texts)
    large = ItemChange("BPEvents", 1, 1, key, {"text": {"S": "x" * 390_000}}, is_new=True)
    (text,) = sent_as([large])
    assert len(text) < 10_000
    assert all(len(each) <= MESSAGE_BYTES_MAX for each in sent_as([small, large, small]))
    assert changes_of(json.loads(text)) == [large]


def test_a_message_takes_texts_up_to_its_size() -> None:
    texts = ["1" * size for size in (LONG_BYTES, 9, LONG_BYTES - 9, LONG_BYTES, 9, LONG_BYTES - 8)]
    assert [text.count("1,1") + 1 for text in change_messages(3, texts)] == [1, 2, 1, 1, 1]


def test_what_no_message_holds_is_told_by_its_table() -> None:
    noise = random.Random(1).randbytes(380_000)
    change = ItemChange(
        "RuleBooks", 1, 1, {"book": {"S": "b"}, "version": {"N": "1"}}, {"B": {"B": noise}}, True
    )
    with pytest.raises(TooLarge, match=r"RuleBooks: \d+ bytes"):
        change_text(change)


LIMITS: dict[str, Any] = {"table": "Limits", "image": None, "key": {}, "at": 1, "new": 1}


@pytest.mark.parametrize(
    "message",
    [{}, {"epoch": 1}, {"epoch": 1, "changes": [{}]}, {"epoch": 1, "changes": "no"}, []],
)
def test_what_is_no_message_is_refused(message: Any) -> None:
    with pytest.raises(ValueError, match="no message of changes"):
        changes_of(message)


def test_a_table_that_nobody_follows_is_refused() -> None:
    with pytest.raises(ValueError, match="'Limits' is not copied to a standby"):
        changes_of({"epoch": 1, "changes": [LIMITS]})
