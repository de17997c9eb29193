"""Rebuilds the items of one user in the tables of engagement, for a restore (rule 21).

They follow from the lake's rows, and from the entries that the ledger's table still has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import day_attributes, entry_item, profile_item, with_daily_terms
from adapters.platform.items import Item, decode_item, encode_item
from analytics.reconcile.reconcile_share import RightItems
from analytics.reconcile.stored_profiles import kept_of
from analytics.restore.user_rows import LakeRows, Row
from rules.days import key_of_stamp, stamp
from rules.engagement.account_state import Profile
from rules.engagement.events import Event, to_item
from rules.engagement.lake_entries import entries_of, event_of, merged_entries
from rules.engagement.ledger import OPENED_AT, Entry, EntryKind
from rules.engagement.reconciliation import days_of, profile_of
from rules.lake.table_items import item_of

LEDGER, DAYS, PROFILES = "RewardsLedger", "DailyActivity", "UserStreaks"
EVENTS, KEYS, REWARDS = "BPEvents", "IdempotencyKeys", "Rewards"
# The order in which tables are written. Entries come first, because they say which events are applied. Events
# come last, so that the function that processes their stream finds all other items.
ORDER = (LEDGER, DAYS, PROFILES, REWARDS, KEYS, EVENTS)


@dataclass(frozen=True, slots=True, order=True)
class Lack:
    """One thing that could not be restored."""

    store: str
    key: str  # the user, and which item of the user; or another item
    reason: str  # in words
    sort_key: str = ""  # of the user's item. If the table still has that item, it is no lack


@dataclass(slots=True)
class RebuiltUser:
    """One user's items, and what could not be restored."""

    user_id: str
    items: dict[str, list[Item]] = field(default_factory=dict)  # by table
    lacks: list[Lack] = field(default_factory=list)  # the tables may still have some (Lack.sort_key)
    entries_to_mark: list[Item] = field(default_factory=list)  # stored entries whose marks were wrong
    profile: Profile | None = None


def rebuild_user(rows: LakeRows, stored: Sequence[Entry], items: RightItems, now: datetime) -> RebuiltUser:
    """Return the items that the tables must have of a user.

    stored: the entries that the ledger's table has, oldest first. items: how a right item is written.
    If table and lake contradict each other about the account, no item of it is rebuilt.
    """
    user = RebuiltUser(rows.user_id)
    from_lake, gap = entries_of(rows.ledger)
    entries, contradiction = merged_entries(from_lake, stored)
    if contradiction:
        reason = f"{contradiction}: nothing of the account is written; --replace {LEDGER} takes the lake's"
        user.lacks.append(Lack(LEDGER, rows.user_id, reason))
        return user
    # The lake's entries end at their first gap, unless the table has the entries that follow.
    if gap and len(entries) == len(from_lake):
        user.lacks.append(Lack(LEDGER, rows.user_id, f"{gap}: it ends with seq {len(entries) - 1}"))
    user.items[LEDGER] = [entry_item(entry) for entry in entries]
    user.entries_to_mark = list(_entries_to_mark(entries, stored))
    user.items[DAYS] = [encode_item(day_attributes(day)) for day in days_of(entries).values()]
    user.items[DAYS] += [item_of(row["item"]) for row in rows.items.get(DAYS, ())]
    _add_profile(user, rows, entries, items, now)
    user.items[REWARDS] = list(_rewards(user, rows.items.get(REWARDS, ()), entries))
    claims = list(_claims(user, rows.items.get(KEYS, ()), entries, now))
    user.items[KEYS] = claims
    events = list(_events(user, rows.events, claims, now))
    user.items[EVENTS] = [encode_item(to_item(event)) for event in events]
    return user


def _entries_to_mark(entries: Sequence[Entry], stored: Sequence[Entry]) -> Iterator[Item]:
    """Yield stored entries whose marks are wrong, such as two that are both marked as the newest."""
    marks = {entry.seq: (entry.active, entry.reversed_by) for entry in entries}
    for entry in stored:
        active, reversed_by = marks[entry.seq]
        if entry.active != active or (reversed_by is not None and entry.reversed_by != reversed_by):
            yield entry_item(replace(entry, active=active, reversed_by=reversed_by))


def _add_profile(
    user: RebuiltUser, rows: LakeRows, entries: Sequence[Entry], items: RightItems, now: datetime
) -> None:
    """Add the user's profile, if there is an entry, or a copy of the profile."""
    if not entries and not rows.items.get(PROFILES):
        return
    kept, lack = kept_of_lake(rows)
    if not kept.version:
        kept = replace(kept, version=1, updated_at=entries[-1].created_at if entries else OPENED_AT)
    if lack:
        user.lacks.append(Lack(PROFILES, rows.user_id, lack))
    if items.pay_bonuses:  # the lake does not know whether they were settled
        kept = replace(kept, expiry=replace(kept.expiry, bonuses_due=True))
    user.profile = profile_of(with_daily_terms(kept, items.daily_terms), entries)
    user.items[PROFILES] = [profile_item(user.profile, items.shards, now)]


def _rewards(user: RebuiltUser, rows: Sequence[Row], entries: Sequence[Entry]) -> Iterator[Item]:
    """Yield the items of redemptions that the ledger has, and items that count a reward of the user.

    Only a redemption's item has `fulfilment`. An item without its entry, and an entry without its item, is a
    lack.
    """
    # The places of redemptions whose item has not come yet
    places_left = {
        key_of_stamp(entry.created_at)
        for entry in entries
        if entry.draft.kind is EntryKind.REDEEM and entry.draft.brand
    }
    for stored in (item_of(row["item"]) for row in rows):
        place = stored["place"]["S"]
        if "fulfilment" not in stored or place in places_left:
            places_left.discard(place)
            yield stored
        else:
            user.lacks.append(Lack(REWARDS, f"{user.user_id} {place}", "its entry is not in the ledger"))
    for place in sorted(places_left):
        reason = "what became of the redemption is not in the lake: nobody ships it again"
        user.lacks.append(Lack(REWARDS, f"{user.user_id} {place}", reason, place))


def _claims(
    user: RebuiltUser, rows: Sequence[Row], entries: Sequence[Entry], now: datetime
) -> Iterator[Item]:
    """Yield the claims that have not expired, except for claims of lost entries.

    A claim of a lost entry would say that the entry exists, so it is not written, and is a lack.
    """
    places = {entry.created_at for entry in entries}
    newest = entries[-1].created_at if entries else ""
    for stored in (item_of(row["item"]) for row in rows):
        claim = decode_item(stored)
        if claim.get("ttl", now.timestamp() + 1) <= now.timestamp():
            continue
        target = claim.get("target", "")
        if _is_place(target) and target not in places and target > newest:
            key = f"{user.user_id} {claim['idempotency_key']}"
            user.lacks.append(Lack(KEYS, key, f"its entry {target} is not in the ledger"))
            continue
        yield stored


def _is_place(target: str) -> bool:
    """Whether the target of a claim is an entry's place in the ledger."""
    try:
        return "#" not in target and bool(datetime.fromisoformat(target))
    except ValueError:
        return False


def _events(user: RebuiltUser, rows: Sequence[Row], claims: Sequence[Item], now: datetime) -> Iterator[Event]:
    """Yield the events, each with the mark `by_server` that only its claim has.

    A claim that is missing is a lack, unless its event has expired, too.
    """
    claims_by_key: Mapping[str, Mapping[str, Any]] = {
        stored_claim["idempotency_key"]: stored_claim
        for stored_claim in map(decode_item, claims)
        if "target" in stored_claim
    }
    for row in rows:
        claim = claims_by_key.get(row["idempotency_key"])
        event = event_of(row, by_server=bool(claim and claim.get("by_server")))
        if claim is None and to_item(event)["ttl"] > now.timestamp():
            reason = "the claim is not kept: another body under the key is not refused"
            key = row["idempotency_key"]
            user.lacks.append(Lack(KEYS, f"{user.user_id} {key}", reason, key))
        yield event


def kept_of_lake(rows: LakeRows) -> tuple[Profile, str]:
    """Return what the ledger does not have of a user's profile, and in words what of it is lost ("": none).

    The lake's copy of the item has it. If there is no copy, or the newest row of the profile is newer, then
    that row has the version alone.
    """
    copies = [item_of(row["item"]) for row in rows.items.get(PROFILES, ())]
    kept = kept_of(rows.user_id, copies[0] if copies else None)
    newest = rows.streaks[0] if rows.streaks else None
    if newest is None or (copies and newest["version"] <= kept.version):
        return kept, "" if copies else "the lake has no profile: the alias is lost"
    loss = f"the alias is that of version {kept.version}" if copies else "the alias is lost"
    changed = replace(kept, version=newest["version"], updated_at=stamp(newest["updated_at"]))
    return changed, f"version {newest['version']} is not kept: {loss}"
