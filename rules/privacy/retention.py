"""How long each store keeps each class of data, by which setting, and what enforces it (rule 22).

The table of docs/retention.md is made from this list. Tests compare it with the inventory, so that no store
is left out, and with the template and the nightly pass, so that each limit is really enforced.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

PAYLOADS, HOT, WORDS = "PayloadRetentionDays", "EventHotDays", "AnswerTextRetentionDays"
CURATED = "CuratedRetentionDays"
OF_LIFECYCLE = "by age"  # docs/retention.md says how long that takes
A_NIGHT = "the night after"
JUDGES = "late events and reversals need it"
MADE_OF = "nightly runs need it"
BY_HAND = "loads delete nothing; delete rows in the warehouse yourself"
# If somebody empties the table of phones by mistake, it can be restored for so long, and until that week's
# pass (rule 21; analytics/forgetting/gone_phones.py).
GONE_PHONES_STAY = timedelta(days=7)


class DataClass(StrEnum):
    """The classes of data that age."""

    RAW = "raw payloads"
    TEXT = "free text"
    DEVICES = "device ids"
    ANSWERS = "closed questions' answers"
    EVENTS = "events"


class Enforcer(StrEnum):
    """What deletes old data.

    LIFECYCLE: a rule of the bucket. TTL: the table's time to live. PASS: the nightly run's pass. QUEUE: the
    queue's retention. WRITER: the writer that makes the data useless deletes it at once. NOBODY: it stays.
    """

    LIFECYCLE = "lifecycle"
    TTL = "time to live"
    PASS = "nightly pass"  # noqa: S105 (no password)
    QUEUE = "queue"
    WRITER = "writer"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How long a store keeps what it has of a class."""

    data: DataClass
    store: str  # its name in the inventory
    holds: str  # which part of it
    enforcer: Enforcer  # who sees to it
    by: str = ""  # under which name the enforcer has it: a rule, an attribute, a pass
    setting: str = ""  # which says for how many days; "" for what is fixed
    until: str = ""  # when it is gone, in words; of NOBODY the reason


RAW, TEXT, DEVICES, ANSWERS, EVENTS = DataClass
LIFECYCLE, TTL, PASS, QUEUE, WRITER, NOBODY = Enforcer


RETENTION_RULES = (
    RetentionRule(RAW, "PayloadBucket", "leads/: large webhooks", LIFECYCLE, "delete-payloads", PAYLOADS),
    RetentionRule(RAW, "PayloadBucket", "leads/inbox/", LIFECYCLE, "forget-inbox", until="30 days"),
    RetentionRule(RAW, "PayloadBucket", "failures/", LIFECYCLE, "forget-failures", until="30 days"),
    RetentionRule(RAW, "Event", "raw_payload: small webhooks", PASS, "raw_payloads", PAYLOADS),
    RetentionRule(RAW, "raw, quarantine, errors", "raw/", LIFECYCLE, "delete-raw", "RawRetentionDays"),
    RetentionRule(
        RAW,
        "raw, quarantine, errors",
        "quarantine/",
        LIFECYCLE,
        "delete-quarantine",
        "QuarantineRetentionDays",
    ),
    RetentionRule(
        RAW, "raw, quarantine, errors", "errors/", WRITER, until="in the night that finds their partition"
    ),
    RetentionRule(TEXT, "Responses", "answer: the words of a text answer", PASS, "answer_texts", WORDS),
    RetentionRule(
        TEXT, "Questions", "prompts and options", TTL, "expires_at", until="90 days after it has closed"
    ),
    RetentionRule(TEXT, "questions", "prompts and options", LIFECYCLE, "delete-curated-questions", CURATED),
    RetentionRule(
        TEXT, "Memory", "what is remembered of a lead", TTL, "expires_at", until="its type says when"
    ),
    RetentionRule(TEXT, "lead_memory", "its versions", LIFECYCLE, "delete-curated-lead-memory", CURATED),
    RetentionRule(TEXT, "BPEvents", "properties, in the sender's words", PASS, "events", HOT),
    RetentionRule(TEXT, "events", "properties", LIFECYCLE, "delete-curated-events", CURATED),
    RetentionRule(
        TEXT, "RewardsLedger", "reasons of reversals", NOBODY, until="the ledger's hashes include them"
    ),
    RetentionRule(TEXT, "ledger", "reasons of reversals", NOBODY, until=MADE_OF),
    RetentionRule(
        TEXT, "Notifications", "notifications and their content", TTL, "expires_at", until="a month"
    ),
    RetentionRule(
        TEXT, "Warehouse", "properties, prompts, reasons", NOBODY, until="amounts are read from them again"
    ),
    RetentionRule(
        DEVICES, "Subscriptions", "push tokens", WRITER, until="when the phone or its user is removed"
    ),
    RetentionRule(
        DEVICES,
        "table_items",
        "push tokens, for restores",
        PASS,
        "gone_phones",
        until=f"{GONE_PHONES_STAY.days} to {2 * GONE_PHONES_STAY.days} days after the phone is removed;"
        " of an erased user the night after",
    ),
    RetentionRule(DEVICES, "IdempotencyKeys", "hashes of devices", TTL, "ttl", until="a year"),
    RetentionRule(
        DEVICES,
        "notifications",
        "pseudonyms of phones",
        LIFECYCLE,
        "delete-curated-notifications",
        CURATED,
    ),
    RetentionRule(
        DEVICES,
        "PostgreSQL",
        "cookies and devices of leads",
        NOBODY,
        until="without it the next event would make another lead; an erasure removes it",
    ),
    RetentionRule(
        ANSWERS, "Responses", "who chose what, without words", NOBODY, until="stats are compared with it"
    ),
    RetentionRule(ANSWERS, "responses", "who chose what, under a pseudonym", NOBODY, until=MADE_OF),
    RetentionRule(ANSWERS, "UserStats", "sums of answers", NOBODY, until="readers ask for them"),
    RetentionRule(
        ANSWERS, "answer_stats", "versions of sums", LIFECYCLE, "delete-curated-answer-stats", CURATED
    ),
    RetentionRule(EVENTS, "BPEvents", "events, once the lake holds them", PASS, "events", HOT),
    RetentionRule(EVENTS, "IdempotencyKeys", "claims of keys", TTL, "ttl", until="90 days"),
    RetentionRule(EVENTS, "events", "events, for good", LIFECYCLE, "delete-curated-events", CURATED),
    RetentionRule(EVENTS, "DailyActivity", "active dates", NOBODY, until=JUDGES),
    RetentionRule(EVENTS, "RewardsLedger", "entries", NOBODY, until=JUDGES),
    RetentionRule(EVENTS, "UserStreaks", "profiles", NOBODY, until=JUDGES),
    RetentionRule(EVENTS, "daily_activity", "active dates", NOBODY, until=MADE_OF),
    RetentionRule(EVENTS, "ledger", "entries", NOBODY, until=MADE_OF),
    RetentionRule(EVENTS, "streaks", "versions of profiles", NOBODY, until=MADE_OF),
    RetentionRule(EVENTS, "user_goals", "nights' goals", LIFECYCLE, "delete-curated-user-goals", CURATED),
    RetentionRule(
        EVENTS, "table_items", "settings, claims, redemptions", NOBODY, until="restores are made of it"
    ),
    RetentionRule(EVENTS, "Rewards", "redemptions", NOBODY, until="partners ask for them"),
    RetentionRule(EVENTS, "Event", "events of leads", NOBODY, until="features are rebuilt from them"),
    RetentionRule(
        EVENTS, "GroupEvents", "which events a root reads", NOBODY, until="it is needed to read these events"
    ),
    RetentionRule(EVENTS, "Feature", "features of a lead", NOBODY, until="readers ask for them"),
    RetentionRule(EVENTS, "lead_events", "events of leads", LIFECYCLE, "delete-curated-lead-events", CURATED),
    RetentionRule(EVENTS, "lead_features", "versions", LIFECYCLE, "delete-curated-lead-features", CURATED),
    RetentionRule(
        EVENTS,
        "state, runs, reports",
        "what_if/",
        LIFECYCLE,
        "forget-what-ifs",
        until="7 days",
    ),
    RetentionRule(EVENTS, "Warehouse", "lake.* and marts", NOBODY, until=BY_HAND),
)


def removal_text(keeping: RetentionRule) -> str:
    """Return when something is gone, in words."""
    if keeping.until:
        return keeping.until
    return A_NIGHT if keeping.enforcer is PASS else OF_LIFECYCLE


def retention_table() -> str:
    """Return all of it as the table of docs/retention.md. A kind of data is named in its first row."""
    lines = ["| data | store | what | setting | when it is gone |", "|---|---|---|---|---|"]
    named_data = ""
    for rule in RETENTION_RULES:
        data = rule.data if rule.data != named_data else ""
        named_data = rule.data
        named = f"`{rule.setting}`" if rule.setting else ""
        fate = f"stays: {rule.until}" if rule.enforcer is NOBODY else removal_text(rule)
        lines.append(f"| {data} | {rule.store} | {rule.holds} | {named} | {fate} |")
    return "\n".join([*lines, ""])
