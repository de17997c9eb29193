"""Fills the tables Event and Questions again, and the claims of leads' events (rule 21).

Memory, features and notes at roots follow: an event that comes back is announced as a new one, and whoever
hears of it joins or counts it once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from adapters.platform.item_tables import ItemTable
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import Erased, is_erased
from analytics.restore.lacking import Lack
from analytics.restore.lake_users import LakeBefore
from analytics.restore.rebuilt import KEYS
from analytics.restore.restorer import Restored
from analytics.restore.told_items import lead_claim_item, lead_event_item, lead_event_of, question_item

LEAD_EVENTS, QUESTIONS = "Event", "Questions"
FROM_ROWS = (LEAD_EVENTS, QUESTIONS)
AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class OthersRestorer:
    """tables: Event, Questions and IdempotencyKeys. keep: those of them that are not written.

    What is there stays: rows have less than items, so no table is replaced by them.
    """

    lake: LakeBefore
    tables: Mapping[str, ItemTable]
    erased: Erased
    keep: Collection[str] = ()

    def run(self, told: Restored, now: datetime) -> None:
        """Restore both. It is safe to repeat."""
        if LEAD_EVENTS not in self.keep:
            self._lead_events(told)
        if QUESTIONS not in self.keep:
            self._questions(told, now)

    def _lead_events(self, told: Restored) -> None:
        for some in chunks(self.lake.lead_events(), AT_ONCE):
            rows = [each for each in some if not is_erased(lead_event_of(each), self.erased)]
            told.lead_events += len(rows)
            told.erased_events += len(some) - len(rows)
            # The event first: a claim without its event would be a duplicate of nothing.
            told.written[LEAD_EVENTS] += self.tables[LEAD_EVENTS].put_missing(map(lead_event_item, rows))
            if KEYS not in self.keep:
                told.written[KEYS] += self.tables[KEYS].put_missing(map(lead_claim_item, rows))

    def _questions(self, told: Restored, now: datetime) -> None:
        """Restore questions that are not forgotten yet; names those that cannot be read."""
        for some in chunks(self.lake.questions(), AT_ONCE):
            items = []
            for row in some:
                try:
                    found = question_item(row, row["answers"], self.lake.until)
                except (KeyError, TypeError, ValueError) as error:
                    told.lacks.append(Lack(QUESTIONS, str(row["question_id"]), f"cannot be read: {error}"))
                    continue
                if int(found["expires_at"]["N"]) > now.timestamp():
                    items.append(found)
            told.written[QUESTIONS] += self.tables[QUESTIONS].put_missing(items)
