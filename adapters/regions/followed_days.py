"""Whether a profile may be followed: it says that its days are written, and the entries that carriers name
(rule 23).
"""

from collections.abc import Mapping
from typing import Any

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import plain
from adapters.platform.tables import get_all
from rules.engagement.ledger import Entry
from rules.regions.changes import FOLLOWED, ItemChange
from rules.regions.standby import days_needed

BEFORE_ALL = "0"
PROFILES, DAYS = "UserStreaks", "DailyActivity"


class FollowedDays:
    """tables: by name in the template."""

    def __init__(self, dynamodb: Any, tables: Mapping[str, str], ledger: LedgerStore) -> None:
        self._dynamodb, self._tables, self._ledger = dynamodb, tables, ledger

    def reach(self, change: ItemChange) -> bool:
        """Whether the days count in all entries that a changed profile counts in; then all of these are
        stored, too.

        change: of a profile whose newest entry the ledger has. Also true for one that is older than what is
        there, and changes nothing.
        """
        stored = self._profile(change.owner)
        if stored.get(FOLLOWED, "") >= change.number:
            return True
        head = plain(change.image or {}).get("ledger_head", "")
        since = stored.get("ledger_head") or BEFORE_ALL
        if head <= since:
            return True
        entries, missing = self._ledger.after(change.owner, since)
        if not self._are_counted([each for each in entries if each.created_at <= head]):
            return False
        # Whoever followed a carrier may have died before it stored these, and nobody looks behind a profile.
        self._ledger.store_new(missing)
        return True

    def _are_counted(self, entries: list[Entry]) -> bool:
        needed = days_needed(entries)
        keys = [{"user_id": entries[0].account_id, "activity_date": each} for each in sorted(needed)]
        found = (
            get_all(self._dynamodb, self._tables[DAYS], keys, "activity_date, ledger_head") if keys else []
        )
        days = {each["activity_date"]: each["ledger_head"] for each in map(plain, found)}
        return all(days.get(each, "") >= place for each, place in needed.items())

    def _profile(self, user_id: str) -> dict[str, Any]:
        answer = self._dynamodb.get_item(
            TableName=self._tables[PROFILES], Key={"user_id": {"S": user_id}}, ConsistentRead=True
        )
        return plain(answer["Item"]) if "Item" in answer else {}
