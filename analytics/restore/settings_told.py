"""A profile's settings as the lake tells them: what no ledger has (rule 21)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.engagement.account_items import profile_from
from adapters.platform.items import plain
from analytics.recompute.activity_runs import pauses_of
from analytics.reconcile.profile_settings import BLANK
from analytics.restore.lake_users import LakeRows, Row
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.archive import pack_spans
from rules.lake.table_items import item_of

PROFILES = "UserStreaks"


def settings_of(rows: LakeRows) -> tuple[Profile | None, str]:
    """Return a user's profile without what the ledger tells, and what of it could not be had.

    None: the lake has no profile. The kept item has everything. Without it, or where it is older than the
    profile's newest row, the row tells zone, pauses and dates, and the rest is not known.
    """
    kept = [plain(item_of(each["item"])) for each in rows.items.get(PROFILES, ())]
    told = kept[0] if kept else {}
    newest = rows.streaks[0] if rows.streaks else None
    if not told and newest is None:
        return None, ""
    lacks = ""
    if newest is not None and newest["version"] > told.get("version", -1):
        told = told | _of_row(newest) | ({} if told else _observed(rows.events))
        lacks = f"version {newest['version']} is not kept: alias, holds, reviews and zones seen " + (
            f"are those of version {kept[0]['version']}" if kept else "are lost"
        )
    profile = profile_from({**BLANK, "user_id": rows.user_id, **told})
    pauses = pauses_of(newest["all_pauses"]) if newest is not None else ()
    every = {*pauses, *profile.cover.pauses}
    if every != set(profile.cover.pauses):  # some are in an archive, which is gone
        profile = replace(profile, cover=replace(profile.cover, pauses=tuple(sorted(every))))
    return replace(profile, cover=replace(profile.cover, archived=None)), lacks


def _of_row(row: Row) -> dict[str, Any]:
    told = {
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
    return told | {"recent_tz_changes": changes}


def _observed(events: Sequence[Row]) -> dict[str, Any]:
    """Return the zone that the newest event named."""
    named = [(each["event_id"], each["timezone"]) for each in events if each["timezone"]]
    return {"observed_at": max(named)[0], "observed_zone": max(named)[1]} if named else {}
