"""Fills the tables Event, Questions and Subscriptions again, and the claims of leads' events (rule 21).

The lake does not have an integration's own words, nor digests of bodies, so these are lost. Memory, features
and notes at roots follow from the events, which are announced as new ones.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck, is_erased
from adapters.questions.phone_table import Phone, PhoneTable, ReceivedMessage
from analytics.restore.restored_users import KEYS, Lack
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import LakeBefore, Row
from rules.days import key_of_stamp, stamp, unstamp
from rules.lake.table_items import PHONES, item_of
from rules.leads.lead_events import SORT_KEY, TYPE_KEY, LeadEvent
from rules.privacy.tombstones import user_subject
from rules.questions.notifications import NEVER
from rules.questions.questions import (
    ANSWERABLE,
    KEPT,
    UNKNOWN,
    Question,
    QuestionStatus,
    QuestionType,
    open_status,
)
from rules.questions.questions import to_item as question_attributes

AT_ONCE = 1_000  # rows that are written together
# Attributes of an event that are the same in the lake's row and in the table's item.
COMMON_ATTRIBUTES = (
    "lead_organization_id",
    "organization_id",
    "root_id",
    "source",
    "source_type",
    "external_event_id",
    "event_type",
    "payload",
    "object_id",
    "object_id_ref",
    "raw_payload_ref",
)
LEAD_EVENTS, QUESTIONS = "Event", "Questions"
FROM_ROWS = (LEAD_EVENTS, QUESTIONS)


@dataclass(frozen=True, slots=True)
class EventsAndQuestionsRestorer:
    """Restores Event, Questions and claims of leads' events.

    Stored items stay. Rows have fewer attributes than items, so no table is replaced by them.
    """

    lake: LakeBefore
    tables: Mapping[str, ItemTable]  # Event, Questions and IdempotencyKeys, by name
    erased: ErasureCheck
    keep: Collection[str] = ()  # names of the tables that are not written

    def run(self, report: RestoreReport, now: datetime) -> None:
        """Restore leads' events and questions. It is safe to repeat."""
        if LEAD_EVENTS not in self.keep:
            self._lead_events(report)
        if QUESTIONS not in self.keep:
            self._questions(report, now)

    def _lead_events(self, report: RestoreReport) -> None:
        """Restore leads' events with their claims, except for those of erased leads."""
        for batch in chunks(self.lake.lead_events(), AT_ONCE):
            rows = [row for row in batch if not is_erased(lead_event_of(row), self.erased)]
            report.lead_events += len(rows)
            report.erased_events += len(batch) - len(rows)
            # The event comes first. If a restore ended between the two, with only the claim written, the
            # event would be refused as a duplicate when it is sent again.
            report.changes[LEAD_EVENTS] += self.tables[LEAD_EVENTS].put_missing(map(lead_event_item, rows))
            if KEYS not in self.keep:
                report.changes[KEYS] += self.tables[KEYS].put_missing(map(lead_claim_item, rows))

    def _questions(self, report: RestoreReport, now: datetime) -> None:
        """Restore questions that have not expired, and report those that cannot be read."""
        for rows in chunks(self.lake.questions(), AT_ONCE):
            items = []
            for row in rows:
                try:
                    item = question_item(row, row["answers"], self.lake.until)
                except (KeyError, TypeError, ValueError) as error:
                    report.lacks.append(Lack(QUESTIONS, str(row["question_id"]), f"cannot be read: {error}"))
                    continue
                if int(item["expires_at"]["N"]) > now.timestamp():
                    items.append(item)
            report.changes[QUESTIONS] += self.tables[QUESTIONS].put_missing(items)


def lead_event_item(row: Row) -> Item:
    """Return a lead's event as the table Event has it, without its raw payload.

    The payload is not parsed. So an event that the live path could not read is restored unchanged.
    """
    occurred_at = stamp(row["occurred_at"])
    fields = {name: row[name] for name in COMMON_ATTRIBUTES}
    at = key_of_stamp(occurred_at)
    keys = {SORT_KEY: f"{at}#{row['event_id']}", TYPE_KEY: f"{row['event_type']}#{at}"}
    return encode_item(
        {**fields, **keys, "occurred_at": occurred_at, "received_at": stamp(row["received_at"])}
    )


def lead_claim_item(row: Row) -> Item:
    """Return the claim of an event's external id. It has no digest, so an event under that id is a duplicate.

    An order's claim does not have the order's state, so a webhook of that order is kept as a conflict.
    """
    return encode_item(
        {
            "user_id": f"{row['source']}#{row['external_event_id']}",
            "idempotency_key": CLAIM_KEY,
            "target": f"{row['lead_organization_id']}#{stamp(row['occurred_at'])}#{row['event_id']}",
            "created_at": stamp(row["received_at"]),
        }
    )


def lead_event_of(row: Row) -> LeadEvent:
    """Return the event of a row, to look for its tombstones. A payload that cannot be read is {}."""
    try:
        payload = json.loads(row["payload"])
    except ValueError:
        payload = {}
    texts = {name: row[name] for name in COMMON_ATTRIBUTES if name != "payload"}
    instants = {name: stamp(row[name]) for name in ("occurred_at", "received_at")}
    return LeadEvent(**texts, **instants, payload=payload if isinstance(payload, dict) else {})


def question_item(row: Row, answers: int, until: datetime) -> Item:
    """Return a question as the table had it before an instant. answers: how many it had then.

    It has neither an idempotency key nor a digest of its body, because the lake has neither.
    """
    closes_at = stamp(row["closes_at"])
    question = Question(
        question_id=row["question_id"],
        agent_id=row["agent_id"],
        type=QuestionType(row["question_type"]),
        prompt=row["prompt"],
        options=tuple(json.loads(row["options"] or "[]")),
        audience=tuple(filter(None, (row["audience"] or "").split(","))),
        category=row["category"],
        required_responses=row["required_responses"],
        current_responses=answers,
        status=QuestionStatus(row["status"]),
        created_at=stamp(row["created_at"]),
        closes_at=closes_at,
        expires_at=int((unstamp(closes_at) + KEPT).timestamp()),
        body_hash=UNKNOWN,
        idempotency_key=UNKNOWN,
        closed_at=stamp(row["closed_at"]) if row["closed_at"] else None,
    )
    was_closed_later = row["closed_at"] is not None and row["closed_at"] >= until
    expired_later = question.status is QuestionStatus.EXPIRED and row["closes_at"] >= until
    if was_closed_later or expired_later or question.status in ANSWERABLE:  # so at `until` it took answers
        question = replace(question, status=open_status(answers), closed_at=None)
    return encode_item(question_attributes(question))


@dataclass(frozen=True, slots=True)
class PhonesRestorer:
    """Restores the table Subscriptions."""

    lake: LakeBefore
    table: PhoneTable
    erased: ErasureCheck  # knows the persons who are not brought back
    keep: Collection[str] = ()  # names of tables that are not written
    replaced: Collection[str] = ()  # names of tables that are made equal to the lake

    def run(self, report: RestoreReport, now: datetime) -> None:
        """Restore all phones. It is safe to repeat."""
        if PHONES in self.keep:
            return
        keys: set[str] = set()
        for rows in chunks(self.lake.phones(), AT_ONCE):
            phones = [phone for phone, changed_at in map(_phone, rows) if self._may_come(phone, changed_at)]
            phones = _readable(phones, report, now)
            report.phones += len(phones)
            self._write(phones, report, now)
            if PHONES in self.replaced:
                keys.update(key for phone in phones for key in phone.items(now))
        if PHONES in self.replaced:
            report.changes[PHONES] += self.table.remove_others(keys)

    def _may_come(self, phone: Phone, changed_at: str) -> bool:
        """Whether the phone's owner was not erased since its row was written."""
        return not self.erased.forbids(user_subject(phone.owner), changed_at)

    def _write(self, phones: list[Phone], report: RestoreReport, now: datetime) -> None:
        """Write the phones' items, and report how many, and the phones whose items stayed."""
        put = self.table.make_equal if PHONES in self.replaced else self.table.put_missing
        outcome = put(phones, now)
        report.changes[PHONES] += outcome.written
        reason = "the phone has another subscription by now, which stays"
        report.lacks += [Lack(PHONES, subscription, reason) for subscription in outcome.taken_over]


def _phone(row: Row) -> tuple[Phone, str]:
    """Return the phone of a row, and when it was changed."""
    last = row["last_notified_at"]
    messages = tuple(ReceivedMessage(**message) for message in row["messages"] or ())
    return Phone(item_of(row["item"]), stamp(last) if last else NEVER, messages), stamp(row["changed_at"])


def _readable(phones: list[Phone], report: RestoreReport, now: datetime) -> list[Phone]:
    """Return the phones that items can be made of. The others become lacks of the report."""
    readable = []
    for phone in phones:
        try:
            phone.items(now)
        except (KeyError, TypeError, ValueError) as error:
            report.lacks.append(Lack(PHONES, phone.subscription_id, f"cannot be read: {error}"))
        else:
            readable.append(phone)
    return readable
