"""Erasures under way and certificates, in the table Erasures (the journal in it: tombstones.py).

| part | place | holds |
|---|---|---|
| open | ERASURE_ID | who is being erased, and how far it is; gone when it is finished |
| done | ERASURE_ID | the certificate, which names nobody; of a lead, a keyed hash of the organization |
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import chunks, query_all
from adapters.privacy.tombstones import Tombstones, journal_puts
from rules.days import stamp
from rules.privacy.erasures import Erasure, Person, PersonKind, with_lead
from rules.privacy.tombstones import Act, JournalEntry

OPEN, DONE = "open", "done"
ENTRIES_MAX = 90  # a transaction takes 100 actions
SUBJECTS_MAX = 90  # at the beginning, in one transaction; the erasure itself writes further tombstones


class ErasureMoved(Exception):
    """Another process has gone on with the erasure since it was read, and will finish it."""


class ErasureJobs:
    """All erasures."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, erasure: Erasure, entries: list[JournalEntry]) -> None:
        """Write the tombstones and the erasure, all or nothing; raises ErasureMoved."""
        self._transact([*journal_puts(self._table, entries), {"Put": self._put(erasure, is_new=True)}])

    def note(self, entries: list[JournalEntry]) -> None:
        """Write further tombstones, some in a transaction. Writing them again changes nothing."""
        for chunk in chunks(entries, ENTRIES_MAX):
            self._transact(journal_puts(self._table, chunk))

    def opened(self) -> Iterator[Erasure]:
        """Yield the erasures that are not finished, the oldest id first; strongly consistent."""
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="#part = :open",
            ExpressionAttributeNames={"#part": "part"},
            ExpressionAttributeValues=encode_item({":open": OPEN}),
            ConsistentRead=True,
        )
        return (_erasure(decode_item(item)) for item in items)

    def get(self, erasure_id: str) -> Erasure | None:
        """Return one that is not finished, or None."""
        item = self._item(OPEN, erasure_id)
        return _erasure(decode_item(item)) if item else None

    def certificate(self, erasure_id: str) -> dict[str, Any] | None:
        """Return the certificate of one that is finished, or None."""
        item = self._item(DONE, erasure_id)
        certificate: dict[str, Any] | None = json.loads(item["certificate"]["S"]) if item else None
        return certificate

    def organization_digest(self, erasure_id: str) -> str:
        """Return the keyed hash of the organization whose lead was erased; "" of a user, or if unfinished."""
        item = self._item(DONE, erasure_id)
        return str(decode_item(item).get("organization", "")) if item else ""

    def go_on(self, erasure: Erasure) -> Erasure:
        """Store how far an erasure is; returns it as stored. Raises ErasureMoved."""
        after = replace(erasure, version=erasure.version + 1)
        try:
            self._dynamodb.put_item(**self._put(after))
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise ErasureMoved(erasure.erasure_id) from None
        return after

    def finish(self, erasure: Erasure, certificate: dict[str, Any], organization_digest: str) -> None:
        """Put the certificate in the place of the erasure: from now on nothing says who it was.

        organization_digest: of a lead, by which its organization is known when it asks again; "" of a user.
        """
        text = json.dumps(certificate, sort_keys=True)
        fields = {"certificate": text, "organization": organization_digest}
        item = encode_item({"part": DONE, "place": erasure.erasure_id, **fields})
        key = encode_item({"part": OPEN, "place": erasure.erasure_id})
        self._transact(
            [
                {"Put": {"TableName": self._table, "Item": item}},
                {"Delete": {"TableName": self._table, "Key": key, **_unchanged_condition(erasure)}},
            ]
        )

    def _transact(self, actions: list[dict[str, Any]]) -> None:
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            codes = {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}
            if "ConditionalCheckFailed" in codes:
                raise ErasureMoved("somebody else was first") from None
            raise

    def _put(self, erasure: Erasure, is_new: bool = False) -> dict[str, Any]:
        condition = {"ConditionExpression": "attribute_not_exists(place)"}
        if not is_new:
            condition = _unchanged_condition(replace(erasure, version=erasure.version - 1))
        return {"TableName": self._table, "Item": _erasure_item(erasure), **condition}

    def _item(self, part: str, erasure_id: str) -> Item | None:
        key = encode_item({"part": part, "place": erasure_id})
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item


def _unchanged_condition(erasure: Erasure) -> dict[str, Any]:
    values = encode_item({":read": erasure.version})
    return {"ConditionExpression": "version = :read", "ExpressionAttributeValues": values}


def _erasure_item(erasure: Erasure) -> Item:
    """Return an erasure as an item: its fields, under the key of what is open."""
    fields = asdict(erasure)
    return encode_item({"part": OPEN, "place": fields.pop("erasure_id"), **fields})


def _erasure(stored: dict[str, Any]) -> Erasure:
    fields = {name: value for name, value in stored.items() if name not in {"part", "place"}}
    fields |= {
        "erasure_id": stored["place"],
        "kind": PersonKind(stored["kind"]),
        "known": {name: tuple(values) for name, values in stored["known"].items()},
        "done": tuple(stored["done"]),
    }
    return Erasure(**fields)


def begin_erasure(
    jobs: ErasureJobs, tombstones: Tombstones, subject: str, person: Person, now: datetime
) -> str:
    """Write an erasure with its tombstones; returns its id, or that of one that is under way or done.

    subject: the id that was named; "" for somebody of whom only identities are known. Raises ErasureMoved.
    """
    leads = person.leads[:SUBJECTS_MAX]
    person = replace(person, leads=leads, identities=person.identities[: SUBJECTS_MAX - len(leads)])
    digests = [tombstones.digest(subject_text) for subject_text in person.subjects()]
    earlier = tombstones.look().get(digests[0])
    if earlier and earlier.stands:
        return earlier.erasure_id
    erasure = Erasure(uuid.uuid4().hex, person.kind, subject, digests[0], stamp(now))
    if person.kind is PersonKind.LEAD:
        erasure = with_lead(erasure, person)
    entries = [JournalEntry(stamp(now), digest, Act.ERASED, erasure.erasure_id) for digest in digests]
    jobs.begin(erasure, entries)
    return erasure.erasure_id
