"""Erasures under way and certificates, in the table Erasures (the erasure log in it: tombstones.py).

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

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import REFUSED, chunks, get_one, if_unchanged, query_all, write_if
from adapters.privacy.tombstones import Tombstones, erasure_log_puts
from adapters.settings.parts import deployed_parts
from rules.days import stamp
from rules.privacy.erasures import Erasure, Person, PersonKind, with_lead
from rules.privacy.inventory import stores_lacking
from rules.privacy.tombstones import Act, ErasureLogEntry

OPEN, DONE = "open", "done"
ENTRIES_MAX = 90  # of one transaction, which takes 100 actions
# An erasure begins with at most this many tombstones, in one transaction. It writes the others as it goes on.
SUBJECTS_MAX = 90


class ErasureMoved(Exception):
    """Another process has changed the erasure since it was read. That process will finish it."""


class ErasureJobs:
    """Stores all erasures and their certificates."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, erasure: Erasure, entries: list[ErasureLogEntry]) -> None:
        """Write the tombstones and the erasure, all or nothing; raises ErasureMoved."""
        self._transact([*erasure_log_puts(self._table, entries), {"Put": self._put(erasure)}])

    def note(self, entries: list[ErasureLogEntry]) -> None:
        """Write further tombstones, ENTRIES_MAX to a transaction. Writing them again changes nothing."""
        for chunk in chunks(entries, ENTRIES_MAX):
            self._transact(erasure_log_puts(self._table, chunk))

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
        """Return an erasure that is not finished; None if there is none with this id."""
        item = self._item(OPEN, erasure_id)
        return _erasure(item) if item else None

    def certificate(self, erasure_id: str) -> dict[str, Any] | None:
        """Return the certificate of a finished erasure; None if there is none with this id."""
        item = self._item(DONE, erasure_id)
        certificate: dict[str, Any] | None = json.loads(item["certificate"]) if item else None
        return certificate

    def organization_digest(self, erasure_id: str) -> str:
        """Return the keyed hash of an erased lead's organization; "" for a user or an unfinished erasure."""
        return str(self._item(DONE, erasure_id).get("organization", ""))

    def save(self, erasure: Erasure) -> Erasure:
        """Store how far an erasure is; returns the stored erasure. Raises ErasureMoved."""
        after = replace(erasure, version=erasure.version + 1)
        if not write_if(self._dynamodb.put_item, **self._put(after)):
            raise ErasureMoved(erasure.erasure_id)
        return after

    def finish(self, erasure: Erasure, certificate: dict[str, Any], organization_digest: str) -> None:
        """Replace the erasure by its certificate. From then on nothing says who the person was.

        organization_digest: of a lead's organization, which may read the certificate; "" for a user.
        """
        text = json.dumps(certificate, sort_keys=True)
        fields = {"certificate": text, "organization": organization_digest}
        item = encode_item({"part": DONE, "place": erasure.erasure_id, **fields})
        key = encode_item({"part": OPEN, "place": erasure.erasure_id})
        condition = if_unchanged("place", "version", erasure.version)
        self._transact(
            [
                {"Put": {"TableName": self._table, "Item": item}},
                {"Delete": {"TableName": self._table, "Key": key, **condition}},
            ]
        )

    def _transact(self, actions: list[dict[str, Any]]) -> None:
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            codes = {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}
            if REFUSED not in codes:
                raise
            raise ErasureMoved("somebody else was first") from None

    def _put(self, erasure: Erasure) -> dict[str, Any]:
        """Return the request that stores an erasure; `version`: 0 for one that is new."""
        condition = if_unchanged("place", "version", erasure.version - 1 if erasure.version else None)
        fields = asdict(erasure)
        item = encode_item({"part": OPEN, "place": fields.pop("erasure_id"), **fields})
        return {"TableName": self._table, "Item": item, **condition}

    def _item(self, part: str, erasure_id: str) -> dict[str, Any]:
        """Return a stored item; {} if there is none."""
        return decode_item(get_one(self._dynamodb, self._table, {"part": part, "place": erasure_id}) or {})


def _erasure(stored: dict[str, Any]) -> Erasure:
    fields = {name: value for name, value in stored.items() if name not in {"part", "place"}}
    fields |= {
        "erasure_id": stored["place"],
        "kind": PersonKind(stored["kind"]),
        "known": {name: tuple(values) for name, values in stored["known"].items()},
        "done": tuple(stored["done"]),
        "lacking": tuple(stored.get("lacking", ())),
    }
    return Erasure(**fields)


def begin_erasure(
    jobs: ErasureJobs, tombstones: Tombstones, subject: str, person: Person, now: datetime
) -> str:
    """Write an erasure with its tombstones; returns its id, or that of the earlier erasure if there is one.

    subject: the id that was named; "" if only identities of the person are known. Raises ErasureMoved.
    """
    leads = person.leads[:SUBJECTS_MAX]
    person = replace(person, leads=leads, identities=person.identities[: SUBJECTS_MAX - len(leads)])
    digests = [tombstones.digest(subject_text) for subject_text in person.subjects()]
    earlier = tombstones.look().get(digests[0])
    if earlier and earlier.stands:
        return earlier.erasure_id
    erasure = Erasure(uuid.uuid4().hex, person.kind, subject, digests[0], stamp(now))
    erasure = replace(erasure, lacking=stores_lacking(deployed_parts()))
    if person.kind is PersonKind.LEAD:
        erasure = with_lead(erasure, person)
    entries = [ErasureLogEntry(stamp(now), digest, Act.ERASED, erasure.erasure_id) for digest in digests]
    jobs.begin(erasure, entries)
    return erasure.erasure_id
