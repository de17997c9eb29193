"""Every column of the lake is filled by what writes the entity's items: a column that nobody fills is found here.

Items are as full as they get, and are made by the functions that make the stored ones.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from adapters.engagement.account_items import day_attributes, entry_item, profile_attributes
from adapters.engagement.friend_store import tie_attributes
from adapters.leads import memory_store
from adapters.leads.feature_store import FeatureStore, Topology
from adapters.platform.items import decode_item, encode_item
from analytics.reconcile.user_goals import goal_row
from rules.book.point_rules import Cap
from rules.days import stamp
from rules.engagement.account_state import Day, Profile
from rules.engagement.board_settings import HIDDEN, YES, BoardSetting
from rules.engagement.events import Event, to_item
from rules.engagement.friends import Circle, Consent, befriend, part
from rules.engagement.leagues import Membership, Outcome, Place, Zone
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, Head, Setting
from rules.engagement.lots import Expiry, Hold
from rules.engagement.streak import BroughtForward, Checkpoint, Cover, fold
from rules.lake.entities import (
    DAILY_ACTIVITY,
    ENTITIES,
    EVENTS,
    FRIENDSHIPS,
    LEAGUE_RESULTS,
    LEDGER,
    RULES,
    STREAKS,
    TABLE_ITEMS,
    USER_GOALS,
    Entity,
    event_item,
    rows_of,
)
from rules.lake.table_items import table_item
from rules.leads import lead_events
from rules.leads.feature_changes import change_from_events
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import FEATURES, Input
from rules.leads.lake_entities import LEAD_EVENTS, LEAD_FEATURES, LEAD_MEMORY
from rules.leads.lead_events import Group, LeadEvent
from rules.leads.memory import derive_entries, remembered_entries
from tests.support.achievement_story import AchievementStory
from tests.support.engagement_strategies import NOW
from tests.support.parts import modules_of_parts
from tests.support.published_books import a_document, documents, published

AT = stamp(NOW)
DAY = date(2026, 3, 10)
# Where an item of each entity gets its attributes.
WRITERS = {
    "events": "rules/engagement/events.py (to_item)",
    "daily_activity": "adapters/engagement/account_items.py (day_attributes)",
    "ledger": "adapters/engagement/account_items.py (entry_item)",
    "streaks": "adapters/engagement/account_items.py (profile_attributes)",
    "user_goals": "analytics/reconcile/user_goals.py (goal_row)",
    "friendships": "adapters/engagement/friend_store.py (tie_attributes)",
    "league_results": "adapters/engagement/leagues.py (LeagueStore.put_membership)",
    "lead_events": "rules/leads/lead_events.py (to_item)",
    "lead_memory": "adapters/leads/memory_store.py (entry_attributes)",
    "lead_features": "adapters/leads/feature_store.py (FeatureStore.write)",
    "rules": "adapters/book_store.py (BookStore.publish)",
    "table_items": "rules/lake/table_items.py (table_item)",
}


def events() -> Iterator[dict[str, Any]]:
    event = Event(
        user_id="u",
        event_id=f"{AT}#id",
        idempotency_key="k",
        event_type="CHECK_IN",
        occurred_at=AT,
        activity_date=DAY,
        zone="UTC",
        points_awarded=5,
        source="api",
        created_at=AT,
        timezone="UTC",
        properties='{"a": 1}',
        rules_version=2,
        cap=Cap(5),
        is_passive=True,
        by_server=True,
        expiry="90d",
        measures="n,minutes=500",
        device_time="2026-06-08T23:00:00Z",
        offline_since="2026-06-01T09:00:00.000000Z",
    )
    yield to_item(event)


def daily_activity() -> Iterator[dict[str, Any]]:
    yield day_attributes(Day("u", DAY, "e", 2, 10, {"CHECK_IN": 10}, AT, AT, lots={"2026-06-08": 10}))


def ledger() -> Iterator[dict[str, Any]]:
    draft = Draft(
        *(EntryKind.EARN, 5, "e", "CHECK_IN", "2026-03-10", "reward", AT, FreezeNote.SPENT, "2026-03-09"),
        rules_version=2,
        cap=Cap(5),
        is_passive=True,
        expires_on="2026-06-08",
        measures="n,minutes=500",
        held_at=AT,
        reason="refunded",
        brand="acme",
        timezone="Asia/Tokyo",
        setting=Setting.PAUSE,
        set_to="2026-03-10/2026-03-12",
    )
    yield decode_item(entry_item(Entry("u", AT, 1, 5, draft, salt=b"s" * 16)))


def league_results() -> Iterator[dict[str, Any]]:
    outcome = Outcome("2026-W10", "bronze", 1, 90, Zone.UP, 10, 3)
    membership = Membership(2, 1, "silver", Place("2026-W10", 0, 3), outcome=outcome)
    key = {"user_id": "u#kept", "activity_date": "league"}
    yield key | {"version": 3, "league": membership.text}


def streaks() -> Iterator[dict[str, Any]]:
    cover = Cover(
        ((date(2026, 3, 1), 1),),
        ((date(2026, 3, 5), date(2026, 3, 6)),),
        frozenset({date(2026, 3, 8)}),
        BroughtForward(Checkpoint(date(2026, 2, 28), 9, 9, 9, 0), 0, 3),
        Checkpoint(date(2026, 1, 1), 1, 1, 1, 0),
    )
    streak = fold([date(2026, 3, 7), date(2026, 3, 10)], cover)
    assert streak
    assert streak.spent, "a freeze is used"
    profile = Profile(
        "u", 3, Head(AT, 4, 20), 30, streak, cover, chosen_zone="UTC", tz_review=True, updated_at=AT
    )
    hold = Hold("h", 5, "mug", AT, AT)
    settings = (BoardSetting(1, "class", "4b"), BoardSetting(2, HIDDEN, YES))
    yield profile_attributes(replace(profile, holds=(hold,), expiry=Expiry(DAY, DAY, 5)), 4)
    yield profile_attributes(replace(profile, board_settings=settings), 4)


def lead_event(kind: str, payload: dict[str, Any]) -> LeadEvent:
    return LeadEvent(
        organization_id="o",
        lead_organization_id="leaf",
        root_id="root",
        source="o/shop",
        source_type="generic",
        external_event_id="1",
        event_type=kind,
        occurred_at=AT,
        received_at=AT,
        payload=payload,
        object_id="7",
        object_id_ref="order",
        raw_payload="{}",
        raw_payload_ref="s3://b/k",
    )


ORDER = {
    "amount_minor": 5,
    "order_id": "7",
    "currency": "USD",
    "products": [{"product_id": "p", "quantity": 1}],
}
GROUPS = {"change": 1, "groups": [{"root": "leaf", "leaves": ["leaf", "other"]}]}


def all_lead_events() -> Iterator[dict[str, Any]]:
    for event in (
        lead_event("purchase_completed", ORDER),
        lead_event("purchase_completed", {"foreign_minor": 5, "order_id": "8", "currency": "EUR"}),
        lead_event("purchase_completed", {"amount_minor": "much"}),
        lead_event("message_received", {"sentiment_milli": 5}),
        lead_event("campaign_opened", {"campaign_id": "c"}),
        lead_event("leads_merged", GROUPS),
    ):
        stored = lead_events.to_item(event)
        yield {name: each for name, each in stored.items() if each is not None}


def lead_memory() -> Iterator[dict[str, Any]]:
    event = lead_event("purchase_completed", ORDER)
    assert derive_entries(event)
    for each in remembered_entries([event]).values():
        yield {"lead_organization_id": "l", "version": 1} | memory_store.entry_attributes("l", each)


class Recorder:
    """Stands for DynamoDB: keeps the attributes that each update sets."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    def update_item(self, **request: Any) -> None:
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        stored = dict(request["Key"])
        for assigned in request["UpdateExpression"].partition(" REMOVE ")[0].removeprefix("SET ").split(", "):
            path, given = assigned.split(" = ")
            stored[names[path]] = values[given]
        self.items.append(decode_item(stored))

    def transact_write_items(self, **request: Any) -> None:
        for each in request["TransactItems"]:
            self.update_item(**each["Update"])

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {}

    def batch_get_item(self, **_: Any) -> dict[str, Any]:
        return {"Responses": {}}


def lead_features() -> Iterator[dict[str, Any]]:
    recorder = Recorder()
    store = FeatureStore(recorder, "Feature", 4)
    values = {each.name: 1 for each in FEATURES}
    built = change_from_events(FeatureItem("l"), [lead_event("campaign_sent", {"campaign_id": "c"})], NOW)
    assert built
    store.write(FeatureItem("l"), Change(values, built.inputs, dict.fromkeys(Input, AT), AT, "2026-03-10"))
    Topology(recorder, "Feature", store).set(1, [Group("root", ("root", "leaf"))])
    yield from recorder.items
    yield {"lead_organization_id": "root", "version": 1, "leaves": ["root", "leaf"]}  # as roots were before


def rules() -> Iterator[dict[str, Any]]:
    boards = {"classes": {"per": "month", "group": "class"}, "one": {"from": AT[:10], "until": AT[:10]}}
    for daily in ({"rest_days": ["saturday"]}, {"rest_days_chosen": 2}):
        yield from documents(published({**a_document(), "daily": daily, "boards": boards}))


def table_items() -> Iterator[dict[str, Any]]:
    image = encode_item({"user_id": "u", "idempotency_key": "k"})
    kept = table_item("IdempotencyKeys", image, NOW, "1")
    assert kept
    yield kept


def user_goals() -> Iterator[dict[str, Any]]:
    story = AchievementStory(0)
    story.live()
    for user, world in story.worlds.items():
        yield goal_row(user, world.entries, story.books, story.now)


def friendships() -> Iterator[dict[str, Any]]:
    consent = Consent(NOW, 50, "7f3a")
    asked, request = befriend(Circle("u"), Circle("v"), consent)
    assert asked
    assert request
    ann, bob = Circle("u", {"v": asked}), Circle("v", {"u": request})
    tie, back = befriend(bob, ann, consent)
    assert tie
    assert back
    ended, _ = part(Circle("v", {"u": tie}), Circle("u", {"v": back}), NOW)
    assert ended
    yield tie_attributes(ended)


ITEMS = {
    EVENTS.name: events,
    DAILY_ACTIVITY.name: daily_activity,
    LEDGER.name: ledger,
    STREAKS.name: streaks,
    USER_GOALS.name: user_goals,
    FRIENDSHIPS.name: friendships,
    LEAGUE_RESULTS.name: league_results,
    LEAD_EVENTS.name: all_lead_events,
    LEAD_MEMORY.name: lead_memory,
    LEAD_FEATURES.name: lead_features,
    RULES.name: rules,
    TABLE_ITEMS.name: table_items,
}
for module in modules_of_parts("writers"):
    WRITERS |= module.WRITERS
    ITEMS |= module.ITEMS


@pytest.mark.parametrize("entity", ENTITIES.values(), ids=lambda each: each.name)
def test_every_column_is_filled_by_its_writer_and_nothing_else_is_written(entity: Entity) -> None:
    filled: set[str] = set()
    for each in ITEMS[entity.name]():
        for row in rows_of(entity, decode_item(encode_item(each)), NOW):
            filled |= {name for name, value in row.items() if value is not None}
    declared = {each.name for each in entity.fields}
    empty, undeclared = sorted(declared - filled), sorted(filled - declared - {"dt", "hour"})
    assert not empty, (
        f"no writer fills {entity.name}.{', '.join(empty)}: write it in {WRITERS[entity.name]}"
        f" or in {entity.shape.__name__} of {entity.shape.__module__}"
    )
    assert not undeclared, (
        f"{entity.name} declares no {', '.join(undeclared)}: add a Field in rules/lake, or name it in left_out"
    )


def test_a_row_of_events_has_only_what_its_item_has() -> None:
    """An old item leaves its table once the lake has all values of the row that it makes."""
    (item,) = events()
    (row,) = rows_of(EVENTS, item, NOW)
    computed = sorted(event_item(row).items() - item.items() - {("dt", row["dt"]), ("hour", row["hour"])})
    assert not computed, (
        f"{computed}: what is computed belongs in sql/models/facts/events.sql. Earlier rows of the lake lack"
        " such a column, so their items would never leave BPEvents (rule 22), and nobody would be told"
    )
