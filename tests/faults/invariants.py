"""What must hold after every schedule (rule 7), checked on the tables alone."""

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from adapters.engagement.account_items import entry_from, profile_from
from adapters.platform.items import decode_item
from rules.book.point_rules import total_points
from rules.days import AT_MIDNIGHT, date_of, parse_moment
from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.ledger import EARNING, INTO_DEBT, EntryKind, FreezeNote
from rules.engagement.points import reversed_events
from tests.faults.callers import Report

KEYS = {"UserStreaks": "user_id", "RewardsLedger": "account_id"}


def violations(
    dynamodb: Any, user: str, report: Report | None = None, tables: Mapping[str, str] | None = None
) -> list[str]:
    """Return what is wrong with a user's data; nothing is the answer. tables: logical id -> name."""

    def read(table: str) -> list[dict[str, Any]]:
        pages = dynamodb.get_paginator("query").paginate(
            TableName=tables[table] if tables else table,
            KeyConditionExpression="#key = :user",
            ExpressionAttributeNames={"#key": KEYS.get(table, "user_id")},
            ExpressionAttributeValues={":user": {"S": user}},
            ConsistentRead=True,
        )
        return [item for page in pages for item in page["Items"]]

    events = [decode_item(each) for each in read("BPEvents")]
    days = {each["activity_date"]: each for each in map(decode_item, read("DailyActivity"))}
    entries = [entry_from(each) for each in read("RewardsLedger")]
    profiles = [decode_item(each) for each in read("UserStreaks")]
    profile = profiles[0] if profiles else {"total_bestie_points": 0, "balance": 0, "active_days": 0}
    wrong: list[str] = []

    def must(holds: bool, what: str) -> None:
        if not holds:
            wrong.append(f"{user}: {what}")

    # The ledger: one chain.
    if entries:
        must(
            entries[0].draft.kind is EntryKind.OPEN and entries[0].balance == 0,
            "the first entry opens with 0",
        )
        must(
            [e.seq for e in entries] == list(range(len(entries))), f"seq has gaps {[e.seq for e in entries]}"
        )
        balance = 0
        for entry in entries:
            balance += entry.draft.points
            must(
                entry.balance == balance, f"balance {entry.balance} after seq {entry.seq} should be {balance}"
            )
            # A version of the past may put points into a lot that is over: its EXPIRE follows.
            is_late = report is not None and report.is_judged_anew and entry.draft.kind is EntryKind.EXPIRE
            leads_down = entry.draft.points < 0 and entry.draft.kind not in INTO_DEBT and not is_late
            must(
                entry.balance >= 0 or not leads_down, f"balance {entry.balance} below 0 by {entry.draft.kind}"
            )
        active = [entry.seq for entry in entries if entry.active]
        must(active == [entries[-1].seq], f"active: {active} of {len(entries)}")
        must(profile["balance"] == entries[-1].balance, "profile and ledger differ in balance")
    # Each stored event: one entry.
    earned = [entry for entry in entries if entry.draft.kind is EntryKind.EARN]
    counted = Counter(entry.draft.event_id for entry in earned)
    must(
        counted == Counter({each["event_id"]: 1 for each in events}),
        f"{len(events)} events, entries {dict(counted)}",
    )
    # Each reversed event: one CLAWBACK.
    taken = Counter(entry.draft.event_id for entry in entries if entry.draft.kind is EntryKind.CLAWBACK)
    must(set(taken.values()) <= {1} and taken.keys() <= counted.keys(), f"reversed: {dict(taken)}")
    gone = reversed_events(entry.draft for entry in entries)
    # Sums.
    earning = [entry.draft for entry in entries if entry.draft.kind in EARNING]
    total = sum(draft.points for draft in earning)
    ever = total + sum(entry.draft.points for entry in entries if entry.draft.kind is EntryKind.BONUS)
    must(profile["total_bestie_points"] == ever, f"profile total {profile['total_bestie_points']} != {ever}")
    must(profile.get("bonus_points", 0) == ever - total, f"bonus points {profile.get('bonus_points')}")
    must(sum(day["points_earned"] for day in days.values()) == total, "daily points and ledger differ")
    awarded, got = dict[tuple[str, str], Counter[int]](), Counter[tuple[str, str]]()
    worth = {each["event_id"]: (int(each["points_awarded"]), _cap(each)) for each in events}
    for draft in earning:
        group = (draft.activity_date or "", draft.event_type or "")
        got[group] += draft.points
        if draft.kind is EntryKind.EARN:
            points, cap = worth.get(draft.event_id or "", (0, 0))
            awarded.setdefault(group, Counter())[cap] += 0 if draft.event_id in gone else points
            must(0 <= draft.points <= points, f"{draft.event_id} earned {draft.points}")
    # Where the past was judged anew, a plain reading tells the sums: tests.faults.goods.
    for group, by_cap in awarded.items() if report is None or not report.is_judged_anew else ():
        should = total_points(by_cap)
        must(got[group] == should, f"{group} earned {got[group]}, should be {should}")
    # Days. An event counts for the date that it claims, unless the account is on the review list for it.
    dates = {entry.draft.event_id: entry.draft.activity_date or "" for entry in earned}
    moved = [each["event_id"] for each in events if dates.get(each["event_id"]) != each["activity_date"]]
    must(not moved or bool(profile.get("review_evidence")), f"moved without a review: {moved}")
    by_day: dict[str, list[str]] = {}
    for each in events:
        by_day.setdefault(dates.get(each["event_id"]) or each["activity_date"], []).append(each["event_id"])
    must(set(by_day) == set(days), f"active dates {sorted(days)} should be {sorted(by_day)}")
    left = {day: [each for each in ids if each not in gone] for day, ids in by_day.items()}
    active_dates = sorted(day for day, ids in left.items() if ids)
    for day, ids in by_day.items():
        if day in days:
            must(
                days[day]["events_count"] == len(left[day]),
                f"{day}: count {days[day]['events_count']} != {len(left[day])}",
            )
            must(days[day]["first_event_id"] == min(ids), f"{day}: not its first event")
    # The streak, told by brute force from dates, grants and the freezes that the journal says were used.
    spent = Counter[str]()
    grants: list[str] = []
    for entry in entries:
        note, when = entry.draft.freeze, entry.draft.freeze_date or ""
        if note is FreezeNote.GRANTED:
            grants.append(when)
        elif note in (FreezeNote.SPENT, FreezeNote.REFUNDED):
            spent[when] += 1 if note is FreezeNote.SPENT else -1
    must(set(spent.values()) <= {0, 1}, f"freezes journalled twice: {dict(spent)}")
    used = sorted(day for day, times in spent.items() if times)
    counting = [each for each in events if each["event_id"] not in gone]
    length, longest, should_use = brute_force(active_dates, sorted(grants), flown_over(counting, dates))
    must(used == should_use, f"freezes used {used} should be {should_use}")
    found = profile.get("run_length", profile.get("current_streak", 0))  # a lapsed streak is stored as 0
    must(found == length, f"streak {found} != {length}")
    must(profile.get("longest_streak", 0) == longest, f"longest {profile.get('longest_streak')} != {longest}")
    must(profile.get("active_days", 0) == len(active_dates), f"active days {profile.get('active_days')}")
    if profiles:
        stored, made = profile_from(profile), profile_with_entries(Profile(user), entries)
        for name in ("chosen_zone", "observed_zone", "tz_changes", "zones_seen", "released_at", "holds"):
            kept, by_ledger = getattr(stored, name), getattr(made, name)
            must(kept == by_ledger, f"{name} {kept} of the profile should be {by_ledger}")
    if report is not None:
        zone = report.zones.get(user)
        must(profile.get("chosen_zone") == zone, f"zone {profile.get('chosen_zone')} != {zone}")
        wrong += _promises(user, events, entries, report)
    return wrong


def flown_over(events: list[dict[str, Any]], dates: Mapping[str | None, str]) -> set[int]:
    """Return the dates (ordinals) between two others that less than 24 hours lie between: no whole date did."""
    at: dict[int, list[datetime]] = {}
    for each in events:
        day = date.fromisoformat(dates.get(each["event_id"]) or each["activity_date"]).toordinal()
        at.setdefault(day, []).append(parse_moment(each["occurred_at"]).utc)
    pairs = [(day, day + 2) for day in at if day + 2 in at and day + 1 not in at]
    return {a + 1 for a, b in pairs if min(at[b]) - max(at[a]) < timedelta(days=1)}


def brute_force(days: list[str], grants: list[str], skipped: set[int]) -> tuple[int, int, list[str]]:
    """Walk over every date between the first and the last activity, one by one."""
    length = longest = 0
    used: list[str] = []
    if not days:
        return 0, 0, []
    active = {date.fromisoformat(day).toordinal() for day in days}
    free = [date.fromisoformat(day).toordinal() for day in grants]
    for today in range(min(active), max(active) + 1):
        if today in active:
            length += 1
            longest = max(longest, length)
        elif length and today not in skipped:
            usable = [since for since in free if since <= today]
            if usable:
                free.remove(usable[0])
                used.append(date.fromordinal(today).isoformat())
            else:
                length = 0
    return length, longest, used


def _promises(user: str, events: list[dict[str, Any]], entries: list[Any], report: Report) -> list[str]:
    """What was answered to the outside must be so."""
    wrong: list[str] = []
    stored = {each["idempotency_key"]: each for each in events}
    if len(stored) != len(events):
        wrong.append(f"{user}: an idempotency key led to two events")
    for (owner, key), event_id in report.accepted.items():
        if owner == user and stored.get(key, {}).get("event_id") != event_id:
            wrong.append(f"{user}: {key} was accepted as {event_id} and is not stored")
    for (owner, key), body in report.bodies.items():
        if owner == user and key in stored:
            day, _ = date_of(parse_moment(body["occurred_at"]), None, None, AT_MIDNIGHT)
            if stored[key]["activity_date"] != day.isoformat():
                wrong.append(f"{user}: {key} is stored with another body's date")
    accepted = Counter(
        key for key, result in report.answers if key[0] == user and result["status"] == "accepted"
    )
    wrong += [f"{key} was accepted {times} times" for key, times in accepted.items() if times > 1]
    redeemed = [
        entry for entry in entries if entry.draft.reward_id == "mug" and entry.draft.kind is EntryKind.REDEEM
    ]
    promised = sum(owner == user for owner, _ in report.redeemed)
    if len(redeemed) != promised:
        wrong.append(f"{user}: {len(redeemed)} redemptions, {promised} were promised")
    # Of "mug" and of holds; those of events and of rewards of the book: tests.faults.goods.
    sold = {entry.created_at for entry in entries if entry.draft.brand}
    reversals = [each.draft for each in entries if each.draft.kind is not EntryKind.CLAWBACK]
    undone = Counter(each.reverses for each in reversals if each.reverses and each.reverses not in sold)
    wrong += [f"{user}: {place} was reversed {times} times" for place, times in undone.items() if times > 1]
    if len(undone) != sum(owner == user for owner, _ in report.reversed):
        wrong.append(f"{user}: reversals {dict(undone)} are not those promised {report.reversed}")
    return wrong


def _cap(event: dict[str, Any]) -> int:
    """The most that events of a type earn on a date, as this one was judged; without a cap, anything."""
    if "cap" not in event:
        return 10**9
    points, _, per = str(event["cap"]).partition("/")
    assert per == "day", "a cap over a week is not for this check"
    return int(points)
