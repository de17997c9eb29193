"""Claims of idempotency keys: the first to claim (user, key) decides what the key stands for (rule 4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all, refused_statements, write_if
from rules.book.point_rules import Cap
from rules.days import unstamp
from rules.engagement.events import RETENTION, Event

ClaimKey = tuple[str, str]  # user id, idempotency key
UNCLAIMED = "attribute_not_exists(user_id) OR #ttl <= :now"
# Attributes that a claim has of its own: the others are of its event (derived_fields).
OWN = frozenset(("user_id", "idempotency_key", "body_hash", "target", "created_at", "ttl"))


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """A key, and the event or ledger entry that it stands for."""

    user_id: str
    idempotency_key: str
    body_hash: str
    target: str  # an event_id, or a ledger entry's created_at
    created_at: str
    derived: Mapping[str, Any] = field(default_factory=dict)  # see derived_fields

    @property
    def key(self) -> ClaimKey:
        """The scope: user and key."""
        return self.user_id, self.idempotency_key


def derived_fields(event: Event) -> dict[str, Any]:
    """Return what follows from the service's clock and book, and not from an event's body alone.

    They are table attributes: of an event that is stored later under the same claim, they are the same.
    """
    fields = {
        "occurred_at": event.occurred_at if event.device_time else None,  # a time that was corrected
        "activity_date": event.activity_date.isoformat(),
        "zone": event.zone,
        "points_awarded": event.points_awarded,
        "source": event.source,
        "rules_version": event.rules_version,
        "cap": event.cap and event.cap.text,
        "is_passive": event.is_passive or None,
        "by_server": event.by_server or None,
        "expiry": event.expiry,
        "measures": event.measures,
        "offline_since": event.offline_since,
    }
    return {name: value for name, value in fields.items() if value is not None}


def claimed_event(event: Event, claim: IdempotencyClaim) -> Event:
    """Return the event of a later attempt with the derived fields of the attempt that won the key."""
    derived, sent_time = claim.derived, event.device_time or event.occurred_at
    return replace(
        event,
        event_id=claim.target,
        created_at=claim.created_at,
        occurred_at=derived.get("occurred_at", sent_time),
        device_time=sent_time if "occurred_at" in derived else None,
        activity_date=date.fromisoformat(derived["activity_date"]),
        zone=derived["zone"],
        points_awarded=derived["points_awarded"],
        source=derived["source"],
        rules_version=derived["rules_version"],
        cap=Cap.of(derived.get("cap")),
        is_passive=bool(derived.get("is_passive")),
        by_server=bool(derived.get("by_server")),
        expiry=derived.get("expiry"),
        measures=derived.get("measures"),
        offline_since=derived.get("offline_since"),
    )


def claim_item(claim: IdempotencyClaim) -> Item:
    """Return the claim as table attributes."""
    ttl = int((unstamp(claim.created_at) + RETENTION).timestamp())
    return encode_item(
        {
            **claim.derived,
            "user_id": claim.user_id,
            "idempotency_key": claim.idempotency_key,
            "body_hash": claim.body_hash,
            "target": claim.target,
            "created_at": claim.created_at,
            "ttl": ttl,
        }
    )


def claim_request(table: str, claim: IdempotencyClaim, now: datetime) -> dict[str, Any]:
    """Return the request that puts a claim if its key has none, or has an expired one.

    DynamoDB deletes expired claims within some days.
    """
    return {
        "TableName": table,
        "Item": claim_item(claim),
        "ConditionExpression": UNCLAIMED,
        "ExpressionAttributeNames": {"#ttl": "ttl"},
        "ExpressionAttributeValues": {":now": {"N": str(int(now.timestamp()))}},
    }


class ClaimStore:
    """The IdempotencyKeys table."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, keys: Iterable[ClaimKey], now: datetime) -> dict[ClaimKey, IdempotencyClaim]:
        """Read claims by (user, key); an expired claim counts as gone."""
        item_keys = [{"user_id": user, "idempotency_key": key} for user, key in sorted(keys)]
        stored = map(decode_item, get_all(self._dynamodb, self._table, item_keys))
        claims = [
            IdempotencyClaim(
                user_id=attributes["user_id"],
                idempotency_key=attributes["idempotency_key"],
                body_hash=attributes["body_hash"],
                target=attributes["target"],
                created_at=attributes["created_at"],
                derived={name: value for name, value in attributes.items() if name not in OWN},
            )
            for attributes in stored
            if attributes["ttl"] > now.timestamp()
        ]
        return {claim.key: claim for claim in claims}

    def claim(
        self, claims: Sequence[IdempotencyClaim], now: datetime
    ) -> tuple[dict[ClaimKey, IdempotencyClaim], set[ClaimKey]]:
        """Claim keys; no key may occur twice in the list.

        Returns (claims, won): the claim that is valid for each key, and the keys that this call has won.
        Raises Unprocessed if DynamoDB keeps throttling.
        """
        # 1. Insert. A key that has a claim is refused.
        by_key = {claim.key: claim for claim in claims}
        statements = []
        for claim in claims:
            item = claim_item(claim)
            values = ", ".join(f"'{name}': ?" for name in item)
            text = f'INSERT INTO "{self._table}" VALUE {{{values}}}'
            statements.append({"Statement": text, "Parameters": list(item.values())})
        refused = refused_statements(self._dynamodb, self._table, statements, "DuplicateItem")
        refused_keys = {claims[index].key for index in refused}
        won = by_key.keys() - refused_keys
        if not refused_keys:
            return by_key, won
        # 2. Replace claims that have expired, but are not deleted yet.
        stored = self.get(refused_keys, now)
        expired = [claim for claim in claims if claim.key in refused_keys and claim.key not in stored]
        won |= {
            claim.key
            for claim in expired
            if write_if(self._dynamodb.put_item, **claim_request(self._table, claim, now))
        }
        # 3. Read those that another process was first to replace.
        if lost := {claim.key for claim in expired} - won:
            stored |= self.get(lost, now)
        return stored | {key: by_key[key] for key in won}, won
