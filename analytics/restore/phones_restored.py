"""Fills the table Subscriptions again: phones that are told of questions (rule 21)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from adapters.platform.tables import chunks
from adapters.privacy.tombstones import Erased
from adapters.questions.phone_table import Phone, PhoneTable, ToldMessage
from analytics.restore.lacking import Lack
from analytics.restore.lake_users import LakeBefore, Row
from analytics.restore.restorer import Restored
from rules.days import stamp
from rules.lake.table_items import PHONES, item_of
from rules.privacy.tombstones import user_subject
from rules.questions.notifications import NEVER

AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class PhonesRestorer:
    """keep, replaced: names of tables, as for Restorer. erased: those who are not brought back."""

    lake: LakeBefore
    table: PhoneTable
    erased: Erased
    keep: Collection[str] = ()
    replaced: Collection[str] = ()

    def run(self, told: Restored, now: datetime) -> None:
        """Restore all phones. It is safe to repeat."""
        if PHONES in self.keep:
            return
        keys: set[str] = set()
        for rows in chunks(self.lake.phones(), AT_ONCE):
            phones = [each for each in map(_phone, rows) if self._may_come(each)]
            phones = [each for each in phones if _is_read(each[0], told, now)]
            told.phones += len(phones)
            self._write([each for each, _ in phones], told, now)
            if PHONES in self.replaced:
                keys.update(key for each, _ in phones for key in each.items(now))
        if PHONES in self.replaced:
            told.written[PHONES] += self.table.remove_others(keys)

    def _may_come(self, found: tuple[Phone, str]) -> bool:
        """Whether nobody was erased since the row was written."""
        phone, changed_at = found
        return not self.erased.forbids(user_subject(phone.owner), changed_at)

    def _write(self, phones: list[Phone], told: Restored, now: datetime) -> None:
        put = self.table.make_equal if PHONES in self.replaced else self.table.put_missing
        outcome = put(phones, now)
        told.written[PHONES] += outcome.written
        reason = "the phone has another subscription by now, which stays"
        told.lacks += [Lack(PHONES, own, reason) for own in outcome.elsewhere]


def _phone(row: Row) -> tuple[Phone, str]:
    last = row["last_notified_at"]
    messages = tuple(ToldMessage(**each) for each in row["messages"] or ())
    return Phone(item_of(row["item"]), stamp(last) if last else NEVER, messages), stamp(row["changed_at"])


def _is_read(phone: Phone, told: Restored, now: datetime) -> bool:
    try:
        phone.items(now)
    except (KeyError, TypeError, ValueError) as error:
        told.lacks.append(Lack(PHONES, phone.own, f"cannot be read: {error}"))
        return False
    return True
