"""The entities of engagement: events, days, ledger entries, profiles and goals; how items become rows."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rules.days import stamp, stamp_of_key
from rules.engagement.board_settings import BoardSetting, groups_of, is_hidden
from rules.engagement.earnings import points_by_type
from rules.engagement.events import stamp_of
from rules.engagement.leagues import Membership
from rules.engagement.packed_dates import listed_dates
from rules.engagement.periods import period_named
from rules.engagement.streak import BroughtForward
from rules.lake.schema import INSERTS, Entity, Field, PublishedTable, Required, Row, StagedColumn, Type
from rules.user_ids import user_of_partition

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type
SEQUENCE_DIGITS = 40  # of a sequence number of DynamoDB, at most
VERSION_BYTES = 10 + 1 + SEQUENCE_DIGITS  # seconds until the year 2286, a point, a sequence number
LEAGUE = "league"  # the attribute of DailyActivity with a place in the leagues
FIRST_STORED = "0"  # the version of an item that was never changed
# The opening entry has 0 points and no time of its own (1970-01-01).
ENTRY_DATE = StagedColumn(
    "entry_date",
    "CASE WHEN seq = 0 THEN NULL ELSE CAST(created_at AS DATE) END",
    "the date of created_at in UTC; NULL for the opening entry, which has no time",
)
PLACE = "^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}Z$"
# The lake has the place as text; other text is NULL.
REVERSES = StagedColumn(
    "reverses",
    f"CASE WHEN reverses ~ '{PLACE}' "
    "THEN CAST(REPLACE(REPLACE(reverses, 'T', ' '), 'Z', '') AS TIMESTAMP) END",
)
JUDGEMENT_FIELDS = (
    Field("rules_version", INTEGER, "the version of the book of rules that judges the event"),
    Field("cap", TEXT, "the cap of its points: 100/day or 400/week", 32),
    Field("is_passive", BOOLEAN, "whether the event keeps no streak"),
)


def is_day(attributes: Mapping[str, Any]) -> bool:
    """Whether an item of DailyActivity is a row: a day that is active, or was."""
    is_kept_item = "packed" in attributes or LEAGUE in attributes  # adapters/engagement/account_items.py
    return not is_kept_item and ("is_inactive" not in attributes or "reversed_events" in attributes)


def event_row(row: Row, _arrived: datetime, change: str) -> Row:
    """Add when an event occurred, which its id begins with; and its version.

    change: its version (event_version), FIRST_STORED for an event as it was first stored.
    """
    return {**row, "occurred_at": stamp_of(str(row.get("event_id", ""))), "version": change}


def event_version(seconds: float, sequence: str) -> str:
    """Return the version of a changed item: a text that grows with each of its changes.

    seconds: when the change came into the stream, since 1970; DynamoDB has whole seconds. sequence: its
    sequence number, at most 40 decimal digits. Raises ValueError for any other.

    The sequence numbers of one item only grow, compared as whole integers: they differ in length, and may
    have more than 38 digits. Both parts have a fixed width here, so texts sort by second and then by number,
    and all of them after FIRST_STORED. The second comes first, because a table that is made anew begins its
    numbers anew. Neither 64 bits nor a DECIMAL(38) have room for both.
    """
    if not (sequence.isascii() and sequence.isdigit() and len(sequence) <= SEQUENCE_DIGITS):
        raise ValueError(f"SequenceNumber is no number of at most {SEQUENCE_DIGITS} digits: {sequence!r:.99}")
    return f"{int(seconds):010}.{sequence:0>{SEQUENCE_DIGITS}}"


def day_row(row: Row, *_: object) -> Row:
    """Return a day's row with the day's points by event type, whatever caps they were under.

    A day that does not keep the streak has 0 events here, although passive events may have given points.
    """
    row = dict(row)
    if row.pop("is_inactive", None):
        row["events_count"] = 0
    by_cap = row.get("points_by_cap")
    if not isinstance(by_cap, Mapping):
        return row
    others = {name: value for name, value in row.items() if name != "points_by_cap"}
    return others | {"points_by_type": points_by_type(by_cap)}


def has_league_result(attributes: Mapping[str, Any]) -> bool:
    """Whether an item of DailyActivity is a place in the leagues whose user was ranked once."""
    return LEAGUE in attributes and Membership.of(attributes[LEAGUE], 0).outcome is not None


def league_row(row: Row, *_: object) -> Row:
    """Return the row of the newest result that a place in the leagues has.

    The place keeps it while the user goes on. So a result may come again, and curation keeps one.
    """
    outcome = Membership.of(row[LEAGUE], 0).outcome if LEAGUE in row else None
    if outcome is None:
        return row
    week = period_named(outcome.week)
    return {
        "user_id": user_of_partition(row["user_id"]),
        "first_date": week.first.isoformat(),
        "last_date": week.last.isoformat(),
        "division": outcome.division,
        "cohort": outcome.cohort or None,
        "league_rank": outcome.rank,
        "points": outcome.points,
        "zone": outcome.zone.value,
        "members": outcome.members,
    }


def entry_row(row: Row, *_: object) -> Row:
    """Return a ledger entry's row with its place as a time: in the table it is a sort key."""
    return {**row, "created_at": stamp_of_key(str(row.get("created_at", "")))}


def streak_row(row: Row, *_: object) -> Row:
    """Return a profile's row with its lists unpacked, and the sums that it begins with as columns.

    A night sets a lapsed streak to 0, and keeps the length of its run as run_length (Projections.lower). Here
    current_streak is that length again. lapses_at becomes a timestamp.
    """
    changed = {**row, **listed_dates(row)}
    if sums := changed.pop("brought_forward", None):
        begins = BroughtForward.of(sums)
        changed["begins_after"] = begins.start.last.isoformat()
        changed["freezes_before"] = begins.freezes_used
    if settings := tuple(map(BoardSetting.of, changed.pop("board_settings", None) or ())):
        changed["hidden"] = is_hidden(settings) or None
        groups = "".join(f";{name}={value}" for name, value in groups_of(settings).items())
        changed["user_groups"] = f"{groups};" if groups else None
    if "run_length" in changed:
        changed["current_streak"] = changed.pop("run_length")
    if type(lapse := changed.get("lapses_at")) is int:
        changed["lapses_at"] = stamp(datetime.fromtimestamp(lapse, UTC))
    return changed


def is_of_pair(attributes: Mapping[str, Any]) -> bool:
    """Whether an item of Friends is a row: a tie of a pair, also of one that has ended."""
    return "pair_id" in attributes


def tie_row(row: Row, arrived: datetime, change: str) -> Row:
    """Add the version of a tie, and when it was written."""
    return {**row, "changed_at": stamp(arrived), "version": change}


EVENTS = Entity(
    "events",
    "One row per event of a user, in its newest version.",
    (
        Required("event_id", TEXT, "`{occurred, UTC}#{uuid}`: the same at every attempt to send it", 128),
        Required("user_id", TEXT, "the user whose event it is", 256),
        Required("idempotency_key", TEXT, "the sender's key; unique per user", 512),
        Required("event_type", TEXT, "a type of the book of rules", 64),
        Required("occurred_at", TIMESTAMP, "when it happened"),
        Required(
            "occurred_local",
            TEXT,
            "the same with the sender's offset; device_time has the original of a wrong clock",
            64,
            attribute="occurred_at",
        ),
        Required(
            "activity_date",
            DATE,
            "the date that it claims (rule 1); the ledger has the date that it counts for",
        ),
        Required("zone", TEXT, "the zone of activity_date", 64),
        Field("timezone", TEXT, "the zone that the event itself named", 64),
        Required("points_awarded", INTEGER, "points before the cap; the ledger has those after it"),
        Required("source", TEXT, "the door or integration that it came by", 128),
        Field("properties", TEXT, "the sender's properties, JSON text"),
        Required("created_at", TIMESTAMP, "when it was stored"),
        Required("version", TEXT, "0 until it is changed; grows with each change", VERSION_BYTES),
        *JUDGEMENT_FIELDS,
        Field("expiry", TEXT, "when its points expire: 90d, or the name of a period", 32),
        Field("measures", TEXT, "what the event adds to streaks: n,minutes=30500 (thousandths)", 512),
        Field("device_time", TEXT, "occurred_at by the device's own clock, if that was wrong", 64),
        Field("offline_since", TEXT, "late events: since when the device was offline, as proven", 32),
    ),
    key=("event_id", "user_id"),  # by time, because an event_id begins with it
    occurred="occurred_at",
    spread="user_id",
    version="version",
    left_out=frozenset({"ttl", "by_server"}),
    shape=event_row,
    published=PublishedTable("BPEvents", "PublishEventsMapping"),
)

DAILY_ACTIVITY = Entity(
    "daily_activity",
    "One row per user and date with activity, in its newest version.",
    (
        Required("user_id", TEXT, "the user whose day it is", 256),
        Required("activity_date", DATE, "the activity date"),
        Required("first_event_id", TEXT, "the day's earliest event", 128),
        Required("events_count", INTEGER, "events that count for the date; 0: it is no longer active"),
        Required("points_earned", INTEGER, "points earned by these events"),
        Field("points_by_type", TEXT, "points earned by event type, JSON text"),
        Required("ledger_head", TIMESTAMP, "place of the newest ledger entry included"),
        Required("created_at", TIMESTAMP, "when the date became active"),
    ),
    key=("user_id", "activity_date"),
    occurred="activity_date",
    spread="user_id",
    version="ledger_head",
    left_out=frozenset({"last_event_id", "passive_events", "lots", "measures", "reversed_events"}),
    shape=day_row,
    may_age=False,
    published=PublishedTable("DailyActivity", "PublishDaysMapping"),
    has_row=is_day,
)

LEAGUE_RESULTS = Entity(
    "league_results",
    "One row per user and week's league that has closed with the user ranked in it.",
    (
        Required("user_id", TEXT, "the user", 256),
        Required("first_date", DATE, "the Monday of the week"),
        Required("last_date", DATE, "and its Sunday"),
        Required("division", TEXT, "in which the user played, by its name in the week's book", 64),
        Field("cohort", INTEGER, "its number in the division and week, from 1"),
        Required("league_rank", INTEGER, "1 and the number of members with more points"),
        Required("points", INTEGER, "of the week, until the league closed"),
        Required("zone", TEXT, "up, stay or down: where the user went from this division", 8),
        Required("members", INTEGER, "how many were ranked in the cohort"),
    ),
    key=("user_id", "first_date"),
    occurred="last_date",
    spread="user_id",
    left_out=frozenset({"activity_date", "version"}),
    shape=league_row,
    published=PublishedTable("DailyActivity", ""),
    has_row=has_league_result,
)

LEDGER = Entity(
    "ledger",
    "One row per entry of an account's ledger; entries never change.",
    (
        Required("account_id", TEXT, "the user", 256, staged=(StagedColumn("user_id", "account_id"),)),
        Required(
            "created_at",
            TIMESTAMP,
            "place in the account; strictly increases",
            staged=(StagedColumn("created_at"), ENTRY_DATE),
        ),
        Required("seq", INTEGER, "0, 1, 2 ... without a gap"),
        Required(
            "kind", TEXT, "OPEN, EARN, REDEEM, REVERSE, EXPIRE, ADJUST, CLAWBACK, RERATE, BONUS, SETTING", 16
        ),
        Required("points", INTEGER, "signed: what the entry adds to the balance"),
        Required("balance", INTEGER, "balance after the entry; below 0: a debt"),
        Field("event_id", TEXT, "EARN, CLAWBACK: the event", 128),
        Field("event_type", TEXT, "EARN, CLAWBACK: the event's type; RERATE: the type with other points", 64),
        Field("activity_date", DATE, "EARN, CLAWBACK: the event's date; RERATE, BONUS: the points' date"),
        Field("reward_id", TEXT, "REDEEM: what was bought; BONUS: the achievement", 512),
        Field(
            "reverses",
            TEXT,
            "REVERSE, CLAWBACK: created_at of the entry that it undoes",
            64,
            staged=(REVERSES,),
        ),
        Field(
            "freeze",
            TEXT,
            "freeze_granted, freeze_revoked, freeze_spent or freeze_refunded",
            32,
            staged=(StagedColumn("freeze_note", '"freeze"'),),
        ),
        Field("freeze_date", DATE, "the date of the grant or its reversal, or the covered date"),
        *JUDGEMENT_FIELDS,
        Field(
            "expires_on",
            DATE,
            "EARN, CLAWBACK, RERATE: when the points expire, at noon UTC; EXPIRE: when they did",
        ),
        Field("held_at", TEXT, "REDEEM of held points, or its reversal: when they were held", 32),
        Field("reason", TEXT, "CLAWBACK, RERATE: the author's reason", 1024),
        Field("brand", TEXT, "REDEEM of a reward, or its reversal: the reward's brand", 64),
        Field(
            "measures", TEXT, "EARN: what the event adds to streaks; CLAWBACK: what it no longer adds", 512
        ),
        Field(
            "seal",
            TEXT,
            "the first entry: the salt of proofs; a residue: the commitment (rule 19)",
            160,
            attribute="salt",
        ),
        Field("timezone", TEXT, "EARN, CLAWBACK: the zone that the event itself named", 64),
        Field("setting", TEXT, "SETTING: what is set, such as zone, pause or review", 16),
        Field("set_to", TEXT, "SETTING: what it is set to", 1024),
    ),
    key=("account_id", "created_at"),
    occurred="created_at",
    spread="account_id",
    left_out=frozenset({"active", "reversed_by", "carried", "applied_through"}),
    shape=entry_row,
    may_age=False,
    published=PublishedTable("RewardsLedger", "PublishLedgerMapping", INSERTS),
)

USER_GOALS = Entity(
    "user_goals",
    "One row per user and nightly run that compared the user's ledger: goals computed from that ledger.",
    (
        Required("user_id", TEXT, "the user", 256),
        Required("version", INTEGER, "grows with each night: seconds from 1970 to folded_at"),
        Required("folded_at", TIMESTAMP, "when the nightly run began"),
        Field(
            "streaks",
            TEXT,
            "streaks of the book, separated by commas, as of the newest period that was reached: name, per,"
            " first date of that period, length, longest, periods reached, freezes used",
        ),
        Field(
            "achievements",
            TEXT,
            "achievements that the user has, separated by commas: name, date, event at which it is dated",
        ),
    ),
    key=("user_id", "version"),
    occurred="folded_at",
    spread="user_id",
    is_of_nights=True,
)

STREAKS = Entity(
    "streaks",
    "One row per version of a user's profile.",
    (
        Required("user_id", TEXT, "the user", 256),
        Required("version", INTEGER, "counts the writes of the profile"),
        Field("current_streak", INTEGER, "length of the run that ends on last_activity_date", default="0"),
        Field("longest_streak", INTEGER, "length of the longest run", default="0"),
        Field("last_activity_date", DATE, "the newest active date"),
        Field("active_days", INTEGER, "number of active dates", default="0"),
        Field("freezes_spent", TEXT, "dates that a freeze covered, after begins_after, separated by commas"),
        Required("total_bestie_points", INTEGER, "points ever earned"),
        Required("balance", INTEGER, "points that can be redeemed; below 0: a debt"),
        Field("ledger_head", TIMESTAMP, "place of the newest ledger entry included"),
        Field("ledger_seq", INTEGER, "seq of that entry"),
        Required("timezone", TEXT, "the zone that decides which date is today for the user", 64),
        Field("chosen_zone", TEXT, "the zone that the user has set", 64),
        Field("freezes", TEXT, "grants (+1) and reversed grants (-1) after begins_after: 2026-01-31+1, ..."),
        Field(
            "pauses",
            TEXT,
            "pauses since a year before begins_after, both dates included: 2026-01-01/2026-01-31, ...",
        ),
        Field("skipped_dates", TEXT, "dates that the user's zone skipped, separated by commas"),
        Field("leaderboard_partition", TEXT, "region#shard", 64),
        Field("lapses_at", TIMESTAMP, "from when the streak is 0 if no event comes"),
        Field("tz_review", BOOLEAN, "too many time-zone changes: to be reviewed", default="FALSE"),
        Required("updated_at", TIMESTAMP, "when this version was written", attribute="streak_updated_at"),
        Field("freezes_before", INTEGER, "how many dates freezes covered until begins_after"),
        Field("begins_after", DATE, "freezes up to this active date and old pauses are in the ledger only"),
        Field(
            "opening", TEXT, "the streak brought from another system: date, length, longest, active dates", 64
        ),
        Field("hidden", BOOLEAN, "the user has left the boards", default="FALSE"),
        Field("user_groups", TEXT, "groups for boards, with ; around each: ;class=4b;team=red;", 1024),
    ),
    key=("user_id", "version"),
    occurred="updated_at",
    spread="user_id",
    left_out=frozenset(
        {
            *(
                "rest_days",
                "recent_tz_changes",
                "observed_zone",
                "observed_at",
                "zones_seen",
                "skews_seen",
                "amnesties",
            ),
            *("backfilled", "review_state", "review_since", "review_evidence", "released_at", "alias"),
            "reviewed_since",
            *("applied_through", "streak_checkpoints", "holds", "repairs", "past_entry", "period_points"),
            *("bonus_points", "expiry_shard", "expires_next", "expiry_settled_on", "expiry_settled_points"),
        }
    ),
    shape=streak_row,
    may_age=False,
    published=PublishedTable("UserStreaks", "PublishStreaksMapping"),
)

# Changes of ties that are, or were, of a pair; requests and blocks of others are nobody's business.
PAIRS = (
    ('{"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": {"pair_id": {"S": [{"exists": true}]}}}}'),
)

FRIENDSHIPS = Entity(
    "friendships",
    # A row does not name the other one of the pair, so an erasure concerns nobody else's rows.
    "One row per pair of friends and user, in its newest version.",
    (
        Required("pair_id", TEXT, "a random text that both rows of a pair have", 64),
        Required("user_id", TEXT, "one of both", 256),
        Required("since", TIMESTAMP, "when the pair began, as a server may have said"),
        Field(
            "role",
            TEXT,
            "how the user came to it: asker, answerer; server: one said that both had agreed",
            16,
        ),
        Field("ended_at", TIMESTAMP, "when it ended; null: it has not"),
        Field("ending", TEXT, "with the user who ended it, why: parting, block; erasure: of the other", 16),
        Required("changed_at", TIMESTAMP, "the second in which the row's item was written"),
        Required("version", TEXT, "0 until it is changed; grows with each change", VERSION_BYTES),
    ),
    key=("pair_id", "user_id"),
    occurred="since",
    spread="pair_id",
    version="version",
    left_out=frozenset({"friend_id", "state", "expires_at"}),
    shape=tie_row,
    may_age=False,
    published=PublishedTable("Friends", "PublishFriendsMapping", PAIRS),
    has_row=is_of_pair,
)
