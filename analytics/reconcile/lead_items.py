"""Items of features against their newest rows in the lake: what nobody has written is named.

A version never changes once it is written. So an item with the version of the lake's newest row has the
values of that row, and none has a lower version. The warehouse cannot tell this by itself: an item that is
deleted, or set back to an earlier version, leaves no newer row.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from adapters.leads.feature_mending import is_readable
from adapters.leads.feature_store import FeatureStore, feature_item_from
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.batches import READ_MAX, chunks
from adapters.platform.items import Item, plain
from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import LEADS_COMPARED
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.days import DAY, stamp
from rules.engagement.ledger_doubts import slices_due, turn_digits
from rules.lake.entities import LEAD_FEATURES, row_of
from rules.lake.lead_entities import state_column
from rules.leads.features import Input

LEAD, STATES = "lead_organization_id", tuple(state_column(each) for each in Input)
COMPARED = tuple(
    each.name for each in LEAD_FEATURES.fields if each.name not in (LEAD, "changed_at", "leaves", *STATES)
)
HASHED = " || '|' || ".join(f"COALESCE({each}, '')" for each in STATES)
ROWS = f"""SELECT {LEAD}, {", ".join(COMPARED)}, MD5({HASHED}) AS states FROM staging.lead_features
WHERE SUBSTRING(MD5({LEAD}), 4, 3) IN ({{digits}})"""  # noqa: S608 (declared names, and digits)
ITEM = "item"  # in place of attributes: all of it
# Where one of these differs, it is about which leads are one. That does not follow from a lead's events.
OF_GROUPS = {"merged_into", "topology"}
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LeadItems:
    """Compares a slice of 28 of all leads each night."""

    objects: Objects
    warehouse: Warehouse
    store: FeatureStore
    events: LeadEventStore

    def astray(self, now: datetime) -> Iterator[dict[str, Any]]:
        """Yield the leads whose turn it is and whose items are not as they were written, as `different` says.

        Of each: `lead_organization_id`, `different` (attributes), and `is_of_groups`. An item that is newer
        than the lake's row is not compared. Raises StatementFailed.
        """
        due = slices_due(self._last_compared(now.date()), now.date())
        digits = ", ".join(map(literal, turn_digits(due)))
        for some in chunks(self.warehouse.rows(ROWS.format(digits=digits)) if due else (), READ_MAX):
            stored = self.store.stored(str(row[LEAD]) for row in some)
            for row in some:
                lead = str(row[LEAD])
                if different := self._different(row, stored.get(lead)):
                    is_of_groups = bool(OF_GROUPS & {*different}) or row["merged_into"] is not None
                    yield {LEAD: lead, "different": " ".join(different), "is_of_groups": is_of_groups}

    def note(self, now: datetime) -> None:
        """Note that all whose turn it was were compared."""
        self.objects.put(LEADS_COMPARED, json.dumps({"compared_on": now.date().isoformat()}).encode())

    def _different(self, row: Row, stored: Item | None) -> list[str]:
        if stored is None:  # of who was erased, the table has no events either
            return [ITEM] if any(True for _ in self.events.of_leaves([str(row[LEAD])])) else []
        if not is_readable(stored):
            return [ITEM]
        read = feature_item_from(stored)
        if set(read.pending) - self.store.members(read.lead_organization_id, read.pending):
            return ["pending"]
        if read.version > row["version"]:
            return []
        found = row_of(LEAD_FEATURES, plain(stored), datetime.now(UTC), 0)
        different = [name for name in COMPARED if _text(found.get(name)) != _text(row[name])]
        if "version" in different:
            return [name for name in different if name in ("version", *OF_GROUPS)]
        states = "|".join(found.get(each, "") for each in STATES)
        is_same = hashlib.md5(states.encode(), usedforsecurity=False).hexdigest() == row["states"]
        return different + ([] if is_same else ["inputs"])

    def _last_compared(self, today: date) -> date:
        """Return when leads were compared last; yesterday if never, for all are too many in one night."""
        try:
            return date.fromisoformat(json.loads(self.objects.get(LEADS_COMPARED))["compared_on"])
        except NoObject:
            return today - DAY


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return stamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    return "" if value is None else str(value)
