"""What the tables of engagement must hold of one user, from the lake's rows and what is there (rule 21)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import day_attributes, entry_item, profile_attributes, profile_from
from adapters.platform.items import Item, decode_item, encode_item
from analytics.recompute.profile_texts import pauses_of
from analytics.reconcile.profile_settings import BLANK
from analytics.restore.user_rows import Lack, LakeRows, Row
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.archive import pack_spans
from rules.engagement.events import Event, to_item
from rules.engagement.ledger import Entry, EntryKind
from rules.engagement.reconciliation import days_of, profile_of
from rules.engagement.recovery import entries_of, event_of, merged_entries
from rules.lake.table_items import item_of

LEDGER, DAYS, PROFILES = "RewardsLedger", "DailyActivity", "UserStreaks"
EVENTS, KEYS, REWARDS = "BPEvents", "IdempotencyKeys", "Rewards"
# Entries first: they say what is applied. Events last: whatever the stream of them leads to finds all else.
ORDER = (LEDGER, DAYS, PROFILES, REWARDS, KEYS, EVENTS)


@dataclass(slots=True)
class RebuiltUser:
    """One user's items by table, and what could not be had."""

    user_id: str
    items: dict[str, list[Item]] = field(default_factory=dict)
    lacks: list[Lack] = field(default_factory=list)
    remarked: list[Item] = field(default_factory=list)  # entries that are there, and get other marks
    profile: Profile | None = None


def rebuild_user(rows: LakeRows, there: Sequence[Entry], shards: int, now: datetime) -> RebuiltUser:
    """Return what must be there.

    there: the entries that the ledger's table has, oldest first. shards: of a region in StreakLeaderboard.

    Where table and lake differ about an account, nothing of it is rebuilt.
    """
    found = RebuiltUser(rows.user_id)
    from_lake, gap = entries_of(rows.ledger)
    entries, wrong = merged_entries(from_lake, there)
    if wrong:
        reason = f"{wrong}: nothing of the account is written; --replace {LEDGER} takes the lake's"
        found.lacks.append(Lack(LEDGER, rows.user_id, reason))
        return found
    if gap and len(entries) == len(from_lake):
        found.lacks.append(Lack(LEDGER, rows.user_id, f"{gap}: it ends with seq {len(entries) - 1}"))
    found.items[LEDGER] = [entry_item(each) for each in entries]
    found.remarked = list(_entries_to_mark(entries, there))
    found.items[DAYS] = [encode_item(day_attributes(each)) for each in days_of(entries).values()]
    found.items[DAYS] += [item_of(each["item"]) for each in rows.items.get(DAYS, ())]
    _add_profile(found, rows, entries, shards)
    found.items[REWARDS] = list(_rewards(found, rows.items.get(REWARDS, ()), entries))
    claims = list(_claims(found, rows.items.get(KEYS, ()), entries, now))
    found.items[KEYS] = claims
    events = list(_events(found, rows.events, claims, now))
    found.items[EVENTS] = [encode_item(to_item(each)) for each in events]
    return found


def _entries_to_mark(entries: Sequence[Entry], there: Sequence[Entry]) -> Iterator[Item]:
    """Yield entries that are there and have other marks than they must: a head that is none any more."""
    marks = {each.seq: (each.active, each.reversed_by) for each in entries}
    for each in there:
        active, by = marks[each.seq]
        if each.active != active or (by is not None and each.reversed_by != by):
            yield entry_item(replace(each, active=active, reversed_by=by))


def _add_profile(user: RebuiltUser, rows: LakeRows, entries: Sequence[Entry], shards: int) -> None:
    settings, lack = settings_of(rows)
    if settings is None and not entries:
        return
    if settings is None:
        lack = "the lake has no profile: zones, pauses, alias and holds are lost"
        settings = Profile(rows.user_id, version=1, updated_at=entries[-1].created_at)
    if lack:
        user.lacks.append(Lack(PROFILES, rows.user_id, lack))
    user.profile = profile_of(settings, entries)
    user.items[PROFILES] = [encode_item(profile_attributes(user.profile, shards))]


def _rewards(user: RebuiltUser, rows: Sequence[Row], entries: Sequence[Entry]) -> Iterator[Item]:
    """Yield redemptions that the ledger has, and how many of each reward the user has."""
    redeemed = {
        each.created_at for each in entries if each.draft.kind is EntryKind.REDEEM and each.draft.brand
    }
    for stored in (item_of(each["item"]) for each in rows):
        place = stored["place"]["S"]
        if "fulfilment" not in stored or place in redeemed:
            redeemed.discard(place)
            yield stored
        else:
            user.lacks.append(Lack(REWARDS, f"{user.user_id} {place}", "its entry is not in the ledger"))
    for place in sorted(redeemed):
        reason = "what became of the redemption is not in the lake: nobody ships it again"
        user.lacks.append(Lack(REWARDS, f"{user.user_id} {place}", reason))


def _claims(
    user: RebuiltUser, rows: Sequence[Row], entries: Sequence[Entry], now: datetime
) -> Iterator[Item]:
    """Yield claims that are not expired. One of an entry that is gone would answer that it is there."""
    places = {each.created_at for each in entries}
    newest = entries[-1].created_at if entries else ""
    for stored in (item_of(each["item"]) for each in rows):
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
    try:
        return "#" not in target and bool(datetime.fromisoformat(target))
    except ValueError:
        return False


def _events(user: RebuiltUser, rows: Sequence[Row], claims: Sequence[Item], now: datetime) -> Iterator[Event]:
    """Yield the events; they get from their claims what rows do not have.

    The claim of one that expired with it is no lack.
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
            user.lacks.append(Lack(KEYS, f"{user.user_id} {row['idempotency_key']}", reason))
        yield event


def settings_of(rows: LakeRows) -> tuple[Profile | None, str]:
    """Return a user's profile without what the ledger has, and what of it could not be had.

    None: the lake has no profile. The kept item has everything. Without it, or where it is older than the
    profile's newest row, the row has zone, pauses and dates, and the rest is not known.
    """
    kept = [decode_item(item_of(each["item"])) for each in rows.items.get(PROFILES, ())]
    settings = kept[0] if kept else {}
    newest = rows.streaks[0] if rows.streaks else None
    if not settings and newest is None:
        return None, ""
    lacks = ""
    if newest is not None and newest["version"] > settings.get("version", -1):
        settings = settings | _settings_of_row(newest) | ({} if settings else _observed_zone(rows.events))
        lacks = f"version {newest['version']} is not kept: alias, holds, reviews and zones seen " + (
            f"are those of version {kept[0]['version']}" if kept else "are lost"
        )
    profile = profile_from({**BLANK, "user_id": rows.user_id, **settings})
    pauses = pauses_of(newest["all_pauses"]) if newest is not None else ()
    every = {*pauses, *profile.cover.pauses}
    if every != set(profile.cover.pauses):  # some are in an archive, which is gone
        profile = replace(profile, cover=replace(profile.cover, pauses=tuple(sorted(every))))
    return replace(profile, cover=replace(profile.cover, archived=None)), lacks


def _settings_of_row(row: Row) -> dict[str, Any]:
    settings = {
        "version": row["version"],
        "streak_updated_at": stamp(row["updated_at"]),
        "timezone_chosen": row["timezone_chosen"],
        "skipped_dates": [each for each in (row["skipped_dates"] or "").split(",") if each] or None,
        "pauses": pack_spans(pauses_of(row["pauses"])) or None,
        "opening": row["opening"],
        "tz_review": row["tz_review"] or None,
    }
    changed = row["timezone_chosen"]
    changes = [f"{stamp(row['updated_at'])} {changed}"] if changed else None
    return settings | {"recent_tz_changes": changes}


def _observed_zone(events: Sequence[Row]) -> dict[str, Any]:
    """Return the zone that the newest event named."""
    named = [(each["event_id"], each["timezone"]) for each in events if each["timezone"]]
    return {"observed_at": max(named)[0], "observed_zone": max(named)[1]} if named else {}
