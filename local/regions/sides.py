"""Tables of both regions, as the return of one of them reads and writes them (rule 23)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, item, plain
from adapters.platform.tables import READ_MAX, chunks, get_all, query_all, scan_all
from rules.engagement.ledger import Entry
from rules.regions.changes import FOLLOWED, KEYS, LEDGER

BEFORE_ALL = "0"  # sorts before every place
# Of an item, what tells where it came from, or where in its region's streams it stands.
OWN = (FOLLOWED, "applied_through")


@dataclass(frozen=True)
class Side:
    """One region's tables. tables: by name in the template."""

    region: str
    dynamodb: Any
    tables: Mapping[str, str]

    @cached_property
    def ledger(self) -> LedgerStore:
        """The ledger's store."""
        return LedgerStore(self.dynamodb, self.tables[LEDGER])

    def table(self, name: str) -> ItemTable:
        """Return a table to write to."""
        return ItemTable(self.dynamodb, self.tables[name], KEYS[name])

    def items(self, name: str) -> Iterator[Item]:
        """Yield all items of a table, strongly consistent."""
        return scan_all(self.dynamodb, TableName=self.tables[name], ConsistentRead=True)

    def account(self, account_id: str) -> list[Item]:
        """Return the items of an account's ledger, oldest first, strongly consistent."""
        return list(
            query_all(
                self.dynamodb,
                TableName=self.tables[LEDGER],
                KeyConditionExpression="account_id = :account",
                ExpressionAttributeValues=item({":account": account_id}),
                ConsistentRead=True,
            )
        )

    def entries(self, account_id: str) -> list[Entry]:
        """Return all entries of an account, oldest first, also those that only a carrier names yet."""
        return self.ledger.after(account_id, BEFORE_ALL)[0]

    def heads(self) -> Iterator[Entry]:
        """Yield the newest entry of each account."""
        found = scan_all(
            self.dynamodb,
            TableName=self.tables[LEDGER],
            FilterExpression="attribute_exists(active)",
            ConsistentRead=True,
        )
        return map(entry_from, found)

    def same(self, name: str, items: Iterable[Item]) -> Iterator[tuple[Item, Item | None]]:
        """Yield each item with what this side has under its key."""
        for some in chunks(items, READ_MAX):
            keys = (plain({key: each[key] for key in KEYS[name]}) for each in some)
            found = {key_of(name, each): each for each in get_all(self.dynamodb, self.tables[name], keys)}
            yield from ((each, found.get(key_of(name, each))) for each in some)


def key_of(name: str, stored: Item) -> tuple[str, ...]:
    """Return an item's key."""
    return tuple(str(next(iter(stored[key].values()))) for key in KEYS[name])


def told(stored: Item | None) -> Item:
    """Return an item without what is its region's own."""
    return {name: each for name, each in (stored or {}).items() if name not in OWN}
