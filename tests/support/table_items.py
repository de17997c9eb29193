"""Items of the tables whose changes the publisher publishes, as users of many languages make them.

Each function returns an item's attributes. moment: when it was written; the lake's hour follows from it.
Optional attributes are there or not, texts have quotes, line breaks and other scripts.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

from rules.days import key_of_stamp, stamp
from rules.leads import lead_events
from rules.leads.features import FEATURES, Input, Unit
from tests.support.drawn_values import WORDS, Item, new_id, some
from tests.support.parts import modules_of_parts

ZONES = ("Europe/Rome", "Asia/Tokyo", "America/New_York", "UTC")
KINDS = ("CHECK_IN", "LESSON", "SHARE")
LEAD_KINDS = ("purchase_completed", "order_refunded", "message_received", "page_viewed", "campaign_opened")


def _json(chance: Random) -> str:
    value = {"title": chance.choice(WORDS), "n": chance.randrange(1000), "ok": chance.random() < 0.5}
    return json.dumps(value, ensure_ascii=False)


def event(chance: Random, moment: datetime) -> Item:
    return {
        "event_id": f"{key_of_stamp(stamp(moment))}#{new_id(chance)}",
        "user_id": f"u{chance.randrange(200_000):06}",
        "idempotency_key": new_id(chance)[:8],
        "event_type": chance.choice(KINDS),
        "occurred_at": f"{moment:%Y-%m-%dT%H:%M:%S}Z",
        "activity_date": f"{moment:%Y-%m-%d}",
        "zone": chance.choice(ZONES),
        "points_awarded": chance.choice((0, 5, 10, 25)),
        "source": "app",
        "created_at": stamp(moment + timedelta(seconds=2)),
    } | some(chance, timezone=chance.choice(ZONES), properties=_json(chance))


def day(chance: Random, moment: datetime) -> Item:
    return {
        "user_id": new_id(chance),
        "activity_date": f"{moment:%Y-%m-%d}",
        "first_event_id": f"{key_of_stamp(stamp(moment))}#{new_id(chance)}",
        "events_count": chance.randrange(1, 9),
        "points_earned": chance.randrange(100),
        "ledger_head": stamp(moment + timedelta(seconds=5)),
        "created_at": stamp(moment),
    } | some(chance, points_by_cap={"CHECK_IN 5/day": 5, "SHARE": chance.randrange(9)})


def entry(chance: Random, moment: datetime) -> Item:
    common = {
        "account_id": f"u{chance.randrange(200_000):06}",
        "created_at": stamp(moment),
        "seq": chance.randrange(1, 5000),
        "points": chance.randrange(-100, 100),
        "balance": chance.randrange(100_000),
    }
    today = f"{moment:%Y-%m-%d}"
    more: Item = chance.choice(
        (
            {
                "kind": "EARN",
                "event_id": f"{key_of_stamp(stamp(moment))}#{new_id(chance)}",
                "event_type": chance.choice(KINDS),
            }
            | {"activity_date": today},
            {"kind": "REDEEM", "reward_id": chance.choice(WORDS)},
            {"kind": "REVERSE", "reverses": stamp(moment - timedelta(days=1))},
            {"kind": "ADJUST", "freeze": "freeze_granted", "freeze_date": today},
        )
    )
    return common | more


def streak(chance: Random, moment: datetime) -> Item:
    days = [f"2026-01-{number:02}" for number in range(1, chance.randrange(1, 9))]
    return {
        "user_id": f"u{chance.randrange(200_000):06}",
        "version": chance.randrange(10**6),
        "total_bestie_points": chance.randrange(10**5),
        "balance": chance.randrange(10**5),
        "timezone": chance.choice(ZONES),
        "streak_updated_at": stamp(moment),
    } | some(
        chance,
        0.8,
        current_streak=chance.randrange(100),
        longest_streak=chance.randrange(1000),
        last_activity_date=f"{moment:%Y-%m-%d}",
        active_days=chance.randrange(1000),
        freezes_spent=days,
        ledger_head=stamp(moment),
        ledger_seq=chance.randrange(1000),
        chosen_zone=chance.choice(ZONES),
        freezes=[f"{each}+1" for each in days],
        pauses=["2026-01-01/2026-01-31"],
        leaderboard_partition=f"eu#{chance.randrange(16)}",
        lapses_at=int(moment.timestamp()) + 86_400,
        tz_review=chance.random() < 0.1,
    )


def lead_event(chance: Random, moment: datetime) -> Item:
    kind = chance.choice(LEAD_KINDS)
    payloads: dict[str, Item] = {
        "purchase_completed": {
            "amount_minor": chance.randrange(10**5),
            "order_id": new_id(chance),
            "currency": "EUR",
        },
        "order_refunded": {"amount_minor": chance.randrange(10**4), "order_id": new_id(chance)},
        "message_received": {
            "sentiment_milli": chance.randrange(-1000, 1000),
            "subject": chance.choice(WORDS),
        },
        "page_viewed": {"title": chance.choice(WORDS), "seconds": chance.randrange(100)},
        "campaign_opened": {"campaign_id": f"c{chance.randrange(100)}"},
    }
    given = lead_events.LeadEvent(
        lead_organization_id=new_id(chance),
        root_id=new_id(chance),
        organization_id="org",
        source="org/shop",
        source_type="order",
        external_event_id=f"{chance.getrandbits(40)}#1",
        event_type=kind,
        occurred_at=stamp(moment),
        received_at=stamp(moment + timedelta(seconds=3)),
        payload=payloads[kind],
    )
    item = {name: value for name, value in lead_events.to_item(given).items() if value is not None}
    return item | some(
        chance, object_id=str(chance.randrange(10**6)), object_id_ref="order", raw_payload_ref="s3://b/k"
    )


def memory(chance: Random, moment: datetime) -> Item:
    return {
        "lead_organization_id": new_id(chance),
        "memory_type#key": f"preference#{chance.choice(WORDS)}",
        "version": chance.randrange(10**6),
        "updated_at": stamp(moment),
    } | some(
        chance,
        0.8,
        value=[chance.choice(WORDS), {"x": chance.choice(WORDS)}],
        confidence={"N": f"0.{chance.randrange(1000):03}"},
        source="org/shop",
        source_event_ids=[new_id(chance), new_id(chance)],
        created_at=stamp(moment - timedelta(days=3)),
        expires_at=int(moment.timestamp()) + 10**6,
    )


def features(chance: Random, moment: datetime) -> Item:
    known = [each for each in FEATURES if chance.random() < 0.7]
    values = {
        each.name: chance.random() < 0.5 if each.unit is Unit.FLAG else chance.randrange(1000)
        for each in known
    }
    inputs = [each for each in Input if chance.random() < 0.7]
    return {
        "lead_organization_id": new_id(chance),
        "version": chance.randrange(10**6),
        "features": values,
        "as_of": {each: stamp(moment) for each in inputs},
        "computed_at": stamp(moment),
    } | some(
        chance,
        leaves=[new_id(chance), new_id(chance)],
        active_on=f"{moment:%Y-%m-%d}",
        topology=chance.randrange(99),
        inputs=dict.fromkeys(inputs, "20514:1:1177;20530:2:99;;"),
    )


ITEMS: dict[str, Callable[[Random, datetime], Item]] = {
    "events": event,
    "daily_activity": day,
    "ledger": entry,
    "streaks": streak,
    "lead_events": lead_event,
    "lead_memory": memory,
    "lead_features": features,
    **{name: make for module in modules_of_parts("table_items") for name, make in module.ITEMS.items()},
}
