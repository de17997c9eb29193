"""What holds of every source, whatever it reads: tests/webhooks has a sample of each."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.leads import sources
from ingest.leads.lead_accept import Envelope, open_payload, part_digest, read_envelope, stored_event
from ingest.leads.readers import DecodeContext
from rules.days import stamp, unstamp
from rules.leads.lead_events import EVENT_TYPES, IDENTITY_TYPES, from_item, to_item
from tests.support.examples import examples
from tests.support.webhooks import CONTEXT, GOOD, NOW, SAMPLES, decode


@pytest.mark.parametrize("source", sorted(GOOD))
def test_parts_are_payloads_of_their_own_and_resends_are_the_same(source: str) -> None:
    for payload in GOOD[source]:
        whole = decode(source, payload)
        again = decode(source, json.loads(json.dumps(payload)), DecodeContext("acme", "shop", "USD", "2027"))
        assert whole == again, "when it arrived must not matter"
        parts = list(sources.source_named(source).parts(payload))
        assert [event for part in parts for event in decode(source, part.payload)] == whole
        resent = sources.source_named(source).parts(json.loads(json.dumps(payload)))
        assert [part_digest(part) for part in parts] == [part_digest(part) for part in resent]
        assert len({part_digest(part) for part in parts}) == len(parts)


@pytest.mark.parametrize("source", sources.names())
def test_every_source_has_a_sample(source: str) -> None:
    assert source in GOOD, f"tests/webhooks/{source}.json is missing: good payloads of the source"


@pytest.mark.parametrize("source", sorted(GOOD))
def test_every_sample_has_its_source(source: str) -> None:
    assert source in sources.names(), f"ingest/leads/sources/{source}.py is missing"


@pytest.mark.parametrize("source", sorted(GOOD))
def test_nobody_s_words_are_in_what_is_derived(source: str) -> None:
    private = SAMPLES[source]["private"]
    assert private, f"tests/webhooks/{source}.json: name words of the payloads under private"
    for word in private:
        assert word in json.dumps(GOOD[source], ensure_ascii=False), f"tests/webhooks/{source}.json: {word}?"
    for payload in GOOD[source]:
        for event in decode(source, payload):
            derived = json.dumps(event.payload, ensure_ascii=False)
            copied = [word for word in private if word in derived]
            assert not copied, f"ingest/leads/sources/{source}.py copies {copied} into the event"


def test_a_decoded_event_can_be_stored_and_read() -> None:
    for source, payloads in GOOD.items():
        for event in (each for payload in payloads for each in decode(source, payload)):
            stored = stored_event(event, Envelope(source, CONTEXT), "leaf", "root")
            read = from_item({name: each for name, each in to_item(stored).items() if each is not None})
            assert read == stored


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(
        ["1772000000", "2026-03-01T00:00:00Z", "a@b.c", "16505551234", "refund", "open", "text"]
    )
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def trails(payload: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value inside a payload."""
    inner: Any = (
        payload.items()
        if isinstance(payload, dict)
        else enumerate(payload)
        if isinstance(payload, list)
        else ()
    )
    here = [above] if above else []
    return here + [trail for key, each in inner for trail in trails(each, (*above, key))]


@given(st.data())
@settings(max_examples=examples(80))
def test_any_value_anywhere_decodes_or_is_refused(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(sorted(GOOD)))
    payload = copy.deepcopy(data.draw(st.sampled_from(GOOD[source])))
    for _ in range(data.draw(st.integers(1, 2))):
        *above, last = data.draw(st.sampled_from(trails(payload)))
        holder = payload
        for key in above:
            holder = holder[key]
        holder[last] = data.draw(values)
        if not trails(payload):
            break
    opened = open_payload(payload, Envelope(source, CONTEXT), NOW)
    assert opened.decoder_bugs == []
    for event, part in opened.events:
        assert event.event_type in EVENT_TYPES - IDENTITY_TYPES
        assert event.identities or event.order  # a refund that names nobody is found by its order
        assert event.external_event_id
        assert stamp(unstamp(event.occurred_at)) == event.occurred_at
        stored_event(event, Envelope(source, CONTEXT), "leaf", "root")
        assert event in decode(source, part.payload)


@given(st.sampled_from(sorted(GOOD)), values)
@settings(max_examples=examples(40))
def test_any_json_decodes_or_is_refused(source: str, payload: Any) -> None:
    assert open_payload(payload, Envelope(source, CONTEXT), NOW).decoder_bugs == []


NEW_SOURCE = """
from ingest.leads.readers import DecodedEvent
from ingest.leads.readers import moment, text_id
from ingest.leads.readers import identities

SIGNATURE = None

def decode(payload, context):
    who = identities([("email", payload["who"])], context, "who", are_verified=True)
    return [DecodedEvent(text_id(payload["id"], "id"), "page_viewed", moment(payload["at"], "at"), who)]
"""


def test_a_new_source_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kiosk.py").write_text(NEW_SOURCE)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    sources.names.cache_clear()
    try:
        assert "kiosk" in sources.names()
        message = {"organization_id": "acme", "source": "kiosk", "payload": {}}
        sent = read_envelope(message, "USD", NOW)
        payload = {"id": "1", "at": "2026-03-01T00:00:00Z", "who": "a@b.c"}
        ((event, _),) = open_payload(payload, sent, NOW).events
        assert (event.event_type, sent.context.source) == ("page_viewed", "acme/kiosk")
        broken = open_payload({}, sent, NOW)
        assert isinstance(broken.decoder_bugs[0], KeyError), (
            "a decoder's bug is told apart from a bad payload"
        )
    finally:
        sources.names.cache_clear()
        sources.source_named.cache_clear()
