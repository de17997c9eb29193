"""Fills the tables Questions and Subscriptions again (rule 21).

The lake does not have digests of questions' bodies, so these are lost. $claims_end: if a message could be
sent until then and no longer, its claim is forgotten.
"""

import json
from collections.abc import Collection, Generator
from dataclasses import dataclass, replace
from datetime import datetime

from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck
from adapters.questions.phone_table import Phone, PhoneTable, ReceivedMessage
from analytics.restore.part_restore import PartRestore, RestoreInput
from analytics.restore.restored_users import Lack
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import NEWEST_ITEM, LakeBefore, Row, smoke_condition
from rules.days import stamp, unstamp
from rules.lake.table_items import REMOVED, item_of
from rules.privacy.tombstones import user_subject
from rules.questions.notifications import CLAIM_KEPT, NEVER
from rules.questions.phone_items import PHONES
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

# ruff: noqa: S608 (names of tables are our own)
AT_ONCE = 1_000  # rows that are written together
QUESTIONS = "Questions"
QUESTION_KEY = ("question_id",)


def phone_rows(lake: LakeBefore) -> Generator[Row]:
    """Yield the newest row of each phone that is not gone, with the messages that it has received.

    last_notified_at: the time of the newest question, or None. messages: those whose claims still count,
    or None.
    """
    # The newest row of each message to a phone, also of those after the instant: they were sent.
    # sendable_until: the last instant at which the message might have been sent.
    messages = """SELECT notifications.*, coalesce(asked.closes_at, claimed_at) AS sendable_until
        FROM notifications LEFT JOIN (
            SELECT question_id, max(closes_at) AS closes_at FROM questions GROUP BY question_id
        ) AS asked USING (question_id)
        QUALIFY row_number() OVER (PARTITION BY phone, message ORDER BY version DESC) = 1"""
    # The name under which the lake has a phone's messages (rules/lake/pseudonyms.py). The place of a
    # phone's item is a JSON list of one id.
    pseudonym = "left(sha256('lake\\x00'::BLOB || encode(trim(newest.place, '[]\"'))), 32)"
    sql = f"""SELECT newest.*, received.last_notified_at, received.messages FROM (
            SELECT * FROM table_items WHERE store = '{PHONES}' AND changed_at < $until {NEWEST_ITEM}
        ) AS newest LEFT JOIN (
            SELECT phone, max(claimed_at) FILTER (question_id IS NOT NULL) AS last_notified_at,
                list({{'key': message, 'claimed_at': claimed_at, 'outcome': outcome,
                    'settled_at': settled_at, 'sendable_until': sendable_until}})
                    FILTER (sendable_until > $claims_end) AS messages
            FROM ({messages}) GROUP BY phone
        ) AS received ON received.phone = {pseudonym}
        WHERE newest.item <> '{REMOVED}' AND NOT {smoke_condition("coalesce(newest.user_id, '')")}
        ORDER BY newest.place"""
    claims_end = lake.now - CLAIM_KEPT
    return lake.rows(sql, "table_items", "notifications", "questions", claims_end=claims_end)


def question_rows(lake: LakeBefore) -> Generator[Row]:
    """Yield the newest row of each question, with how many `answers` it had."""
    # Answers are counted by rows: those of persons who were erased are among them, under other names.
    sql = f"""SELECT newest.*, coalesce(answers.given, 0) AS answers FROM (
            SELECT * FROM questions WHERE created_at < $until AND NOT {smoke_condition("agent_id")}
            QUALIFY row_number() OVER (
                PARTITION BY question_id ORDER BY created_at DESC, version DESC
            ) = 1
        ) AS newest LEFT JOIN (
            SELECT question_id, count(*) AS given FROM responses
            WHERE created_at < $until GROUP BY question_id
        ) AS answers USING (question_id) ORDER BY question_id"""
    return lake.rows(sql, "questions", "responses")


@dataclass(frozen=True, slots=True)
class QuestionsRestorer:
    """Restores the table Questions. Stored items stay: rows have fewer attributes than items."""

    lake: LakeBefore
    table: ItemTable

    def run(self, report: RestoreReport, now: datetime) -> None:
        """Restore questions that have not expired, and report those that cannot be read."""
        for rows in chunks(question_rows(self.lake), AT_ONCE):
            items = []
            for row in rows:
                try:
                    item = question_item(row, row["answers"], self.lake.until)
                except (KeyError, TypeError, ValueError) as error:
                    report.lacks.append(Lack(QUESTIONS, str(row["question_id"]), f"cannot be read: {error}"))
                    continue
                if int(item["expires_at"]["N"]) > now.timestamp():
                    items.append(item)
            report.changes[QUESTIONS] += self.table.put_missing(items)


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
        for rows in chunks(phone_rows(self.lake), AT_ONCE):
            phones = [phone for phone, changed_at in map(_phone, rows) if self._may_come(phone, changed_at)]
            phones = _readable(phones, report, now)
            report.others["phones"] += len(phones)
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


def restore(given: RestoreInput, report: RestoreReport, now: datetime) -> None:
    """Restore phones, then questions, because a restored question is sent to phones that have not had it."""
    if PHONES in given.tables:
        phones = PhoneTable(given.dynamodb, given.tables[PHONES], given.tables["Limits"])
        PhonesRestorer(given.lake, phones, given.erased, given.keep, given.replaced).run(report, now)
    if QUESTIONS in given.tables and QUESTIONS not in given.keep:
        table = ItemTable(given.dynamodb, given.tables[QUESTIONS], QUESTION_KEY)
        QuestionsRestorer(given.lake, table).run(report, now)


RESTORE = PartRestore(
    entities=("questions", "responses", "notifications"),
    replaceable=(PHONES,),
    filled=(QUESTIONS,),
    keys={QUESTIONS: QUESTION_KEY},
    not_in_the_lake={
        QUESTIONS: "digests of what was asked; whoever asks another question under an old key gets the"
        " old one",
        "Responses": "answers and their texts; whoever has answered may answer again, and earns nothing"
        " by it",
        "UserStats": "stats of answers, which the lake has only under pseudonyms; they follow from Responses",
        PHONES: "messages under way, and which polls wait; a phone may get a message again",
    },
    counted={"phones": "phones"},
    run=restore,
)
