"""What the old writer has that the new one never saw: it is found by reading both, and nothing is written."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from adapters.platform.items import Item, plain
from adapters.platform.tables import query_all
from adapters.privacy.tombstones import Erased, subject_of
from ingest.engagement.points.commands import COMMAND
from local.regions.sides import Side, key_of, told
from rules.engagement.ledger import Entry
from rules.regions.changes import FOLLOWED, GONE, LEDGER
from rules.regions.standby import (
    WAYS,
    Unseen,
    UnseenWay,
    common_length,
    settings_unseen,
    tables_in_order,
    unseen_entries,
)

PROFILES, CLAIMS, EVENTS = "UserStreaks", "IdempotencyKeys", "BPEvents"


@dataclass(frozen=True, slots=True)
class Listed:
    """Something that somebody must decide about. key: whose, or which; never what it holds."""

    store: str
    key: str
    reason: str


@dataclass(slots=True)
class FoundUnseen:
    """What was found. accounts: the unseen entries of each account that has some, and how many it has in
    common.

    carried: items by table, that the new writer gets unless their key is taken. listed: with reasons. taken:
    users' keys that stand for something else in each region.
    """

    accounts: dict[str, tuple[int, list[Unseen]]] = field(default_factory=dict)
    carried: dict[str, list[Item]] = field(default_factory=dict)
    listed: list[Listed] = field(default_factory=list)
    taken: set[tuple[str, ...]] = field(default_factory=set)

    def compare_claims(self, mine: Item, other: Item) -> None:
        """List a key that stands for one thing here, and for another there."""
        one, two = plain(mine), plain(other)
        if one.get("target") == two.get("target"):
            return
        # An event that is stored under both ids would count twice, also where its body is the same.
        self.taken.add(key_of(CLAIMS, mine))
        if one.get("body_hash") != two.get("body_hash"):
            reason = "another body in each region"
        elif "#" in str(one.get("target")):
            reason = "one event under two ids, the new writer's counts"
        else:
            reason = "carried out in both regions"
        reason += f": {one.get('target')} and {two.get('target')}"
        self.listed.append(Listed(CLAIMS, _label(CLAIMS, mine), reason))


@dataclass(frozen=True, slots=True)
class UnseenFinder:
    """old: the region that returns. new: the one that writes. erased: whose items go nowhere."""

    old: Side
    new: Side
    erased: Erased
    now: datetime

    def find(self) -> FoundUnseen:
        """Read both regions' tables; the old one must be quiet."""
        found = FoundUnseen()
        for account_id in self._parted():
            theirs, ours = self.old.entries(account_id), self.new.entries(account_id)
            keys = self._keys(account_id)
            found.accounts[account_id] = (common_length(theirs, ours), unseen_entries(theirs, ours, keys))
        for name in tables_in_order(self.old.tables.keys() & WAYS.keys()):
            self._items(name, found)
        self._settings(found)
        return found

    def _parted(self) -> Iterator[str]:
        """Yield the accounts whose newest entry the new writer does not have: all others' ledgers it has
        whole.
        """
        heads = ({**_head_item(each)} for each in self.old.heads())
        for head, other in self.new.same(LEDGER, heads):
            if other is None:
                yield head["account_id"]["S"]

    def _keys(self, account_id: str) -> dict[str, str]:
        """Return the keys of a user's commands, by the places of their entries."""
        claims = query_all(
            self.old.dynamodb,
            TableName=self.old.tables[CLAIMS],
            KeyConditionExpression="user_id = :user AND begins_with(idempotency_key, :command)",
            ExpressionAttributeValues={":user": {"S": account_id}, ":command": {"S": COMMAND}},
            ConsistentRead=True,
        )
        keys = {each["target"]: each["idempotency_key"].removeprefix(COMMAND) for each in map(plain, claims)}
        return {place: key for place, key in keys.items() if not key.startswith(PLACE)}

    def _items(self, name: str, found: FoundUnseen) -> None:
        way = WAYS[name]
        if way is UnseenWay.DERIVED:
            return
        for mine, other in self.new.same(name, self.old.items(name)):
            if told(mine) == told(other) or self._is_nobodys(name, mine):
                continue
            if name == CLAIMS and other is not None:
                found.compare_claims(mine, other)
            elif other is None and way is UnseenWay.CARRIED and not _is_of_unseen(name, mine, found):
                found.carried.setdefault(name, []).append(told(mine))
            elif way is UnseenWay.LISTED and (other is None or FOLLOWED not in mine):
                reason = "the new writer lacks it" if other is None else "both regions have changed it"
                found.listed.append(Listed(name, _label(name, mine), reason))

    def _is_nobodys(self, name: str, mine: Item) -> bool:
        """Whether an item's time is over, it is a mark of ours, or of a person who was erased."""
        if name == CLAIMS and mine["user_id"]["S"].startswith(GONE):
            return True
        expires = plain(mine).get("ttl")
        if isinstance(expires, int) and expires <= self.now.timestamp():
            return True
        subject = subject_of(mine) if name != "Erasures" else None
        return bool(subject and (of := self.erased.of(subject)) and of.stands)

    def _settings(self, found: FoundUnseen) -> None:
        for mine, other in self.new.same(PROFILES, self.old.items(PROFILES)):
            if FOLLOWED in mine or told(mine) == told(other):
                continue  # whoever only follows has set nothing
            names = settings_unseen(plain(mine), plain(other or {}))
            if names:
                reason = f"{', '.join(names)}: other than the new writer has"
                found.listed.append(Listed(PROFILES, mine["user_id"]["S"], reason))


PLACE = "free-freeze:"  # of a month's free freezes, not of a command


def _head_item(entry: Entry) -> Item:
    return {"account_id": {"S": entry.account_id}, "created_at": {"S": entry.created_at}}


def _label(name: str, stored: Item) -> str:
    return "/".join(key_of(name, stored)).replace(COMMAND, "")


def _is_of_unseen(name: str, mine: Item, found: FoundUnseen) -> bool:
    """Whether an item is the claim of an unseen entry: it comes with the entry, if that is applied."""
    if name != CLAIMS:
        return False
    _, beyond = found.accounts.get(mine["user_id"]["S"], (0, []))
    return mine.get("target", {}).get("S") in {each.entry.created_at for each in beyond}
