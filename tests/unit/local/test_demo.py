"""The demo: what its shop sends is taken, its book can be published, and its person's streak is mended."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from ingest.book_document import book_of_document
from ingest.leads.readers import DecodeContext
from local.demo_input import LATE_DAYS, PERSON_DAYS, ZONE, book, person_events, webhooks
from local.verify import local_date
from tests.support.webhooks import decode

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_every_webhook_of_the_shop_names_somebody() -> None:
    context = DecodeContext("demo-shop", "demo-shop", "USD", NOW.isoformat())
    for hook in (each for seed in range(10) for each in webhooks(40, seed, NOW)):
        found = decode(hook["source"], json.loads(json.dumps(hook["payload"])), context)
        assert found and all(each.identities for each in found), hook


def test_the_demos_book_can_be_published_and_each_reward_has_a_picture() -> None:
    found = book_of_document(book())
    assert len(found.rewards) == 4
    assert all(each.title and each.description for each in found.rewards.values())
    for each in found.rewards.values():
        assert each.image_url.startswith("data:image/svg+xml,")
        ET.fromstring(unquote(each.image_url.partition(",")[2]))


@pytest.mark.parametrize("hour", [0, 3, 12, 22, 23])
def test_one_lesson_of_the_demos_person_comes_late_and_mends_a_streak_of_all_dates(hour: int) -> None:
    now = datetime(2026, 10, 26, hour, 4, tzinfo=UTC)  # the clocks of Berlin have just gone back
    there, late = person_events(now)
    dates = {local_date(each) for each in there}
    today = now.astimezone(ZONE).date()
    every = {today - timedelta(days=ago) for ago in range(PERSON_DAYS)}
    assert every - dates == {today - timedelta(days=LATE_DAYS)} == {local_date(late)}
    assert dates <= every
    assert all(datetime.fromisoformat(each["occurred_at"]) <= now for each in there)
    assert len({each["idempotency_key"] for each in there}) == len(there)
    assert person_events(now) == (there, late), "the same again, when the demo runs again"
    yesterday = [each["event_type"] for each in there if local_date(each) == today - timedelta(days=1)]
    assert yesterday.count("CHECK_IN") == 2, (
        "her page shows why an event earns nothing: a check-in a day earns"
    )
