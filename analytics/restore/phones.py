"""Fills the table Subscriptions again (rule 21)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck
from adapters.questions.phone_table import Phone, PhoneTable, ReceivedMessage
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import Lack, LakeBefore, Row
from rules.days import stamp
from rules.lake.table_items import PHONES, item_of
from rules.privacy.tombstones import user_subject
from rules.questions.notifications import NEVER

AT_ONCE = 1_000  # rows whose phones are written together


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
            report.written[PHONES] += self.table.remove_others(keys)

    def _may_come(self, phone: Phone, changed_at: str) -> bool:
        """Whether the phone's owner was not erased since its row was written."""
        return not self.erased.forbids(user_subject(phone.owner), changed_at)

    def _write(self, phones: list[Phone], report: RestoreReport, now: datetime) -> None:
        """Write the phones' items, and report how many, and the phones whose items stayed."""
        put = self.table.make_equal if PHONES in self.replaced else self.table.put_missing
        outcome = put(phones, now)
        report.written[PHONES] += outcome.written
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
