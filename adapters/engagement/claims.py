"""Claims of idempotency keys: the first to claim (user, key) decides what the key stands for (rule 4)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all, refused_statements, write_if
from rules.book.point_rules import Cap
from rules.days import unstamp
from rules.engagement.events import RETENTION, Event
from rules.engagement.events import to_item as event_attributes

ClaimKey = tuple[str, str]  # user id, idempotency key
UNCLAIMED = "attribute_not_exists(user_id) OR #ttl <= :now"
# Attributes of an event that follow from the service's clock and book, and not from the body alone. Those
# that a claim may lack have a function: the claim's value (None: it lacks one) -> the event's.
DERIVED: Mapping[str, Callable[[Any], Any] | None] = {
    **dict.fromkeys(("activity_date", "zone", "points_awarded", "source", "rules_version")),
    "cap": Cap.of,
    **dict.fromkeys(("is_passive", "by_server"), bool),
    **dict.fromkeys(("expiry", "measures", "offline_since"), lambda text: text),
}


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
    """Return the attributes of an event that its body alone does not determine."""
    attributes = event_attributes(event)
    corrected = {"occurred_at": event.occurred_at} if event.device_time else {}
    return corrected | {name: attributes[name] for name in DERIVED if name in attributes}


def claimed_event(event: Event, claim: IdempotencyClaim) -> Event:
    """Return the event of a later attempt with the derived attributes of the attempt that won the key."""
    derived = dict(claim.derived)
    # The winner's item has occurred_at only if its clock was corrected.
    sent_time = event.device_time or event.occurred_at
    derived["device_time"] = sent_time if "occurred_at" in derived else None
    derived.setdefault("occurred_at", sent_time)
    derived["activity_date"] = date.fromisoformat(derived["activity_date"])
    derived |= {name: decode(derived.get(name)) for name, decode in DERIVED.items() if decode}
    return replace(event, event_id=claim.target, created_at=claim.created_at, **derived)


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


def _claim_from(attributes: Mapping[str, Any]) -> IdempotencyClaim:
    return IdempotencyClaim(
        user_id=attributes["user_id"],
        idempotency_key=attributes["idempotency_key"],
        body_hash=attributes["body_hash"],
        target=attributes["target"],
        created_at=attributes["created_at"],
        derived={name: attributes[name] for name in (*DERIVED, "occurred_at") if name in attributes},
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
        claims = [_claim_from(attributes) for attributes in stored if attributes["ttl"] > now.timestamp()]
        return {claim.key: claim for claim in claims}

    def claim(
        self, claims: Sequence[IdempotencyClaim], now: datetime
    ) -> tuple[dict[ClaimKey, IdempotencyClaim], set[ClaimKey]]:
        """Claim keys; no key may occur twice in the list.

        Returns (claims, won): the claim that is valid for each key, and the keys that this call has won.
        Raises Unprocessed if DynamoDB keeps throttling.
        """
        # 1. Insert. A key that has a claim is refused.
        statements = [self._statement(claim) for claim in claims]
        refused = refused_statements(self._dynamodb, self._table, statements, "DuplicateItem")
        refused_keys = {claims[index].key for index in refused}
        inserted = {claim.key for claim in claims} - refused_keys
        # 2. Replace claims that have expired, but are not deleted yet.
        valid = self.get(refused_keys, now)
        expired = [claim for claim in claims if claim.key in refused_keys and claim.key not in valid]
        replaced = {
            claim.key
            for claim in expired
            if write_if(self._dynamodb.put_item, **claim_request(self._table, claim, now))
        }
        won = inserted | replaced
        valid |= {claim.key: claim for claim in claims if claim.key in won}
        # 3. Read those that another process was first to replace.
        lost = {claim.key for claim in expired} - replaced
        return valid | self.get(lost, now), won

    def _statement(self, claim: IdempotencyClaim) -> dict[str, Any]:
        attributes = claim_item(claim)
        values = ", ".join(f"'{name}': ?" for name in attributes)
        return {
            "Statement": f'INSERT INTO "{self._table}" VALUE {{{values}}}',
            "Parameters": list(attributes.values()),
        }
