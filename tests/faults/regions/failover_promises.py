"""What must hold once both regions are together again: on the tables, and against what the outside was told."""

from collections import Counter

from local.region_unseen import shared_fields
from rules.engagement.ledger import EntryKind, entry_id
from rules.regions.standby import UnseenFate
from tests.faults.invariants import violations
from tests.faults.regions.failover import Failover, of_users
from tests.faults.regions.region import IN_USE


def failover_violations(run: Failover) -> list[str]:
    """Return what is wrong after a schedule; nothing is the answer."""
    wrong = [*run.wrong, *(each for region in run.regions for each in region.intrusions[:3])]
    for user in run.users:
        wrong += violations(run.writer.bare, user)
        wrong += _promises(run, user) + _settings(run, user)
    return wrong + _lost(run) + _standby(run) + _doubled(run)


def _doubled(run: Failover) -> list[str]:
    """A key has one event, also where the clock of its device was corrected by something else each time."""
    events = of_users(run.writer, run.users).items("BPEvents")
    counted = Counter((each["user_id"]["S"], each["idempotency_key"]["S"]) for each in events)
    return [f"{user}: {key} has {count} events" for (user, key), count in counted.items() if count > 1]


def _standby(run: Failover) -> list[str]:
    """The standby has what the writer has."""
    writer, standby = (of_users(each, run.users) for each in (run.writer, run.other(run.writer)))
    wrong = []
    for name in IN_USE:
        both = [
            {tuple(map(str, each.items())): each for each in map(shared_fields, side.items(name))}
            for side in (writer, standby)
        ]
        mine, other = ({str(sorted(each)) for each in some} for some in both)
        if name != "RewardsLedger" and mine != other:
            wrong.append(f"{name}: the standby has {len(other - mine)} others, lacks {len(mine - other)}")
    for user in run.users:
        ours, theirs = writer.entries(user), standby.entries(user)
        if [(e.created_at, e.seq, e.draft, e.active) for e in ours] != [
            (e.created_at, e.seq, e.draft, e.active) for e in theirs
        ]:
            wrong.append(f"{user}: the standby's ledger has {len(theirs)} entries, the writer's {len(ours)}")
    return wrong


def _lost(run: Failover) -> list[str]:
    """Each entry that was ever written is in the ledger, or was found when its region returned."""
    found = {
        (user, each.entry.created_at)
        for some in run.found
        for user, unseen in some.entries.items()
        for each in unseen
    }
    kept = {
        (user, each.created_at)
        for user in run.users
        for each in of_users(run.writer, run.users).entries(user)
    }
    return [
        f"{user}: {kind} {place} of {region.name} is lost silently"
        for region in run.regions
        for (user, place), kind in region.entries.items()
        if (user, place) not in kept and (user, place) not in found
    ]


def _promises(run: Failover, user: str) -> list[str]:
    """What was answered is so, or is listed by name."""
    dynamodb = of_users(run.writer, run.users)
    stored = {each["event_id"]["S"] for each in dynamodb.items("BPEvents") if each["user_id"]["S"] == user}
    listed = [each for each in run.listed if each.key.startswith(user)]
    wrong = [
        f"{user}: {key} was accepted as {event_id}, is not stored, and not listed"
        for (owner, key), event_id in run.report.accepted.items()
        if owner == user and event_id not in stored and not any(event_id in each.reason for each in listed)
    ]
    entries = {each.created_at: each for each in dynamodb.entries(user)}
    places = {entry_id(place) for place in entries}
    claims = {
        each["idempotency_key"]["S"].removeprefix("\x1fredeem:"): each["target"]["S"]
        for each in dynamodb.items("IdempotencyKeys")
        if each["user_id"]["S"] == user
    }
    undone = _undone(run)
    for (owner, key), place in run.report.redeemed.items():
        if owner != user or place in places or claims.get(key) in entries or place in undone:
            continue
        if not any(entry_id(_place(each.key)) == place for each in listed):
            wrong.append(f"{user}: the redemption {key} ({place}) is not in the ledger, and not listed")
    wrong += _reversals(
        run, user, {entry_id(each.created_at) for each in entries.values() if each.reversed_by}
    )
    redeemed = Counter(
        each.created_at
        for each in entries.values()
        if each.draft.kind is EntryKind.REDEEM and each.draft.reward_id == "mug"
    )
    twice = [each for each in listed if "carried out in both" in each.reason]
    keys = {key for key in claims if key.startswith(("r", "again", "spent"))}
    if len(redeemed) > len(keys) + len(twice):
        wrong.append(f"{user}: {len(redeemed)} redemptions under {len(keys)} keys, {len(twice)} are listed")
    return wrong


def _place(name: str) -> str:
    parts = name.split()
    return parts[1] if len(parts) > 1 else ""


def _undone(run: Failover) -> set[str]:
    """Return the ids of redemptions that were unseen, and reversed before anybody saw them."""
    return {
        entry_id(each.entry.created_at)
        for some in run.found
        for unseen in some.entries.values()
        for each in unseen
        if each.fate is UnseenFate.UNDONE
    }


def _reversals(run: Failover, user: str, reversed_ids: set[str]) -> list[str]:
    listed = {each.key for each in run.listed}
    unseen = _undone(run) | {
        entry_id(each.entry.created_at)
        for some in run.found
        for unseen in some.entries.values()
        for each in unseen
        if each.fate is UnseenFate.REDEEM
    }
    return [
        f"{user}: {place} was reversed, is not, and is not listed"
        for owner, place in run.report.reversed
        if owner == user and place not in reversed_ids | unseen and not any(user in each for each in listed)
    ]


def _settings(run: Failover, user: str) -> list[str]:
    zone = run.report.zones.get(user)
    profiles = [
        each for each in of_users(run.writer, run.users).items("UserStreaks") if each["user_id"]["S"] == user
    ]
    stored = profiles[0].get("chosen_zone", {}).get("S") if profiles else None
    is_listed = any(each.store == "UserStreaks" and each.key == user for each in run.listed)
    return [] if stored == zone or is_listed else [f"{user}: zone {stored} != {zone}, and not listed"]
