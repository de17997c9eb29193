"""Fills the tables Event, Questions and Subscriptions again, and the claims of leads' events (rule 21).

What the lake leaves out on purpose stays out: an integration's own words, and digests of bodies.

Memory, features and notes at roots follow: an event that comes back is announced as a new one, and whoever
hears of it joins or counts it once.
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
from analytics.restore.restored_users import KEYS
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import Lack, LakeBefore, Row
from rules.days import stamp, unstamp
from rules.lake.table_items import PHONES, item_of
from rules.leads.lead_events import SORT_KEY, TYPE_KEY, LeadEvent
from rules.privacy.tombstones import user_subject
from rules.questions.notifications import NEVER
from rules.questions.questions import KEPT, UNKNOWN, Question, QuestionStatus, QuestionType
from rules.questions.questions import to_item as question_attributes

AT_ONCE = 1_000
AS_IN_TABLE = (
    *("lead_organization_id", "organization_id", "root_id", "source", "source_type", "external_event_id"),
    *("event_type", "payload", "object_id", "object_id_ref", "raw_payload_ref"),
)
LEAD_EVENTS, QUESTIONS = "Event", "Questions"
FROM_ROWS = (LEAD_EVENTS, QUESTIONS)


@dataclass(frozen=True, slots=True)
class OthersRestorer:
    """What is there stays: rows have less than items, so no table is replaced by them."""

    lake: LakeBefore
    tables: Mapping[str, ItemTable]  # Event, Questions and IdempotencyKeys
    erased: ErasureCheck
    keep: Collection[str] = ()  # those of them that are not written

    def run(self, report: RestoreReport, now: datetime) -> None:
        """Restore both. It is safe to repeat."""
        if LEAD_EVENTS not in self.keep:
            self._lead_events(report)
        if QUESTIONS not in self.keep:
            self._questions(report, now)

    def _lead_events(self, report: RestoreReport) -> None:
        for some in chunks(self.lake.lead_events(), AT_ONCE):
            rows = [each for each in some if not is_erased(lead_event_of(each), self.erased)]
            report.lead_events += len(rows)
            report.erased_events += len(some) - len(rows)
            # The event first: a claim without its event would be a duplicate of nothing.
            report.written[LEAD_EVENTS] += self.tables[LEAD_EVENTS].put_missing(map(lead_event_item, rows))
            if KEYS not in self.keep:
                report.written[KEYS] += self.tables[KEYS].put_missing(map(lead_claim_item, rows))

    def _questions(self, report: RestoreReport, now: datetime) -> None:
        """Restore questions that are not forgotten yet; names those that cannot be read."""
        for some in chunks(self.lake.questions(), AT_ONCE):
            items = []
            for row in some:
                try:
                    found = question_item(row, row["answers"], self.lake.until)
                except (KeyError, TypeError, ValueError) as error:
                    report.lacks.append(Lack(QUESTIONS, str(row["question_id"]), f"cannot be read: {error}"))
                    continue
                if int(found["expires_at"]["N"]) > now.timestamp():
                    items.append(found)
            report.written[QUESTIONS] += self.tables[QUESTIONS].put_missing(items)


@dataclass(frozen=True, slots=True)
class PhonesRestorer:
    """Restores the table Subscriptions."""

    lake: LakeBefore
    table: PhoneTable
    erased: ErasureCheck  # those who are not brought back
    keep: Collection[str] = ()  # keep, replaced: names of tables, as for Restorer
    replaced: Collection[str] = ()

    def run(self, report: RestoreReport, now: datetime) -> None:
        """Restore all phones. It is safe to repeat."""
        if PHONES in self.keep:
            return
        keys: set[str] = set()
        for rows in chunks(self.lake.phones(), AT_ONCE):
            phones = [each for each in map(_phone, rows) if self._may_come(each)]
            phones = [phone for phone in phones if _is_read(phone[0], report, now)]
            report.phones += len(phones)
            self._write([each for each, _ in phones], report, now)
            if PHONES in self.replaced:
                keys.update(key for each, _ in phones for key in each.items(now))
        if PHONES in self.replaced:
            report.written[PHONES] += self.table.remove_others(keys)

    def _may_come(self, pair: tuple[Phone, str]) -> bool:
        """Whether nobody was erased since the row was written."""
        phone, changed_at = pair
        return not self.erased.forbids(user_subject(phone.owner), changed_at)

    def _write(self, phones: list[Phone], report: RestoreReport, now: datetime) -> None:
        put = self.table.make_equal if PHONES in self.replaced else self.table.put_missing
        outcome = put(phones, now)
        report.written[PHONES] += outcome.written
        reason = "the phone has another subscription by now, which stays"
        report.lacks += [Lack(PHONES, own, reason) for own in outcome.taken_over]


def _phone(row: Row) -> tuple[Phone, str]:
    last = row["last_notified_at"]
    messages = tuple(ReceivedMessage(**each) for each in row["messages"] or ())
    return Phone(item_of(row["item"]), stamp(last) if last else NEVER, messages), stamp(row["changed_at"])


def _is_read(phone: Phone, report: RestoreReport, now: datetime) -> bool:
    try:
        phone.items(now)
    except (KeyError, TypeError, ValueError) as error:
        report.lacks.append(Lack(PHONES, phone.subscription_id, f"cannot be read: {error}"))
        return False
    return True


def lead_event_item(row: Row) -> Item:
    """Return a lead's event as the table Event has it, without its raw payload.

    It is not read, so one that the live path could not read comes back as it was.
    """
    occurred_at = stamp(row["occurred_at"])
    fields = {name: row[name] for name in AS_IN_TABLE}
    keys = {SORT_KEY: f"{occurred_at}#{row['event_id']}", TYPE_KEY: f"{row['event_type']}#{occurred_at}"}
    return encode_item(
        {**fields, **keys, "occurred_at": occurred_at, "received_at": stamp(row["received_at"])}
    )


def lead_claim_item(row: Row) -> Item:
    """Return the claim of an event's external id. It has no digest: whatever comes under it is a duplicate.

    Of an order, which has a state in its claim, it is a claim without one: what comes is kept as a conflict.
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
    """Return whose event a row is, for whoever asks for tombstones. Its payload is read if it can be."""
    try:
        payload = json.loads(row["payload"])
    except ValueError:
        payload = {}
    texts = {name: row[name] for name in AS_IN_TABLE if name != "payload"}
    at = {name: stamp(row[name]) for name in ("occurred_at", "received_at")}
    return LeadEvent(**texts, **at, payload=payload if isinstance(payload, dict) else {})


def question_item(row: Row, answers: int, until: datetime) -> Item:
    """Return a question as the table has it before an instant. answers: how many it had by then.

    It has neither the key nor a digest of what was asked: whoever asks again under its key gets it.
    """
    closes_at = stamp(row["closes_at"])
    found = Question(
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
    is_later = row["closed_at"] is not None and row["closed_at"] >= until
    if is_later or (found.status is QuestionStatus.EXPIRED and row["closes_at"] >= until):
        found = replace(found, status=QuestionStatus.OPEN, closed_at=None)
    return encode_item(question_attributes(found))
