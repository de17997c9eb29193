"""An entry's canonical form, and the hash that it gets when it is appended (rule 19).

The rules that decide about an account know of no hashes: `with_proof` stands around them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from rules.days import stamp
from rules.engagement.account_state import Decision
from rules.engagement.ledger import Draft, Entry, EntryKind, Head
from rules.engagement.proving.hashes import (
    DIGEST_BYTES,
    INTEGER,
    TEXT,
    YES,
    ZERO,
    Field,
    commitment,
    content,
    encoded,
    entry_salt,
    link,
)

# What stays of an erased person's entry (rules/lake/residue.py), in the order in which it is hashed.
SHOWN: Mapping[str, str] = {
    "seq": INTEGER,
    "kind": TEXT,
    "points": INTEGER,
    "balance": INTEGER,
    "event_type": TEXT,
    "activity_date": TEXT,
    "freeze": TEXT,
    "freeze_date": TEXT,
    "rules_version": INTEGER,
    "cap": TEXT,
    "is_passive": YES,
    "expires_on": TEXT,
    "brand": TEXT,
    "measures": TEXT,
}
# What an erasure takes away, or changes.
HIDDEN: Mapping[str, str] = {
    "account_id": TEXT,
    "created_at": TEXT,
    "event_id": TEXT,
    "reward_id": TEXT,
    "reverses": TEXT,
    "held_at": TEXT,
    "reason": TEXT,
}


def shown_of(entry: Entry) -> list[Field]:
    """Return the fields of an entry that stay when the person is erased."""
    draft = entry.draft
    return [
        ("seq", INTEGER, str(entry.seq)),
        ("kind", TEXT, draft.kind.value),
        ("points", INTEGER, str(draft.points)),
        ("balance", INTEGER, str(entry.balance)),
        *_common(*_common_values(draft)),
    ]


def _common_values(draft: Draft) -> tuple[Any, ...]:
    """Return the values that many entries share."""
    return (
        *(draft.event_type, draft.activity_date, draft.freeze, draft.freeze_date, draft.rules_version),
        *(draft.cap, draft.is_passive, draft.expires_on, draft.brand, draft.measures),
    )


@lru_cache(maxsize=4096)
def _common(*values: Any) -> tuple[Field, ...]:
    event_type, activity_date, freeze, freeze_date, version, cap, is_passive, expires_on, brand, measures = (
        values
    )
    told: tuple[tuple[str, str, str | None], ...] = (
        *(("event_type", TEXT, event_type), ("activity_date", TEXT, activity_date)),
        *(("freeze", TEXT, freeze and freeze.value), ("freeze_date", TEXT, freeze_date)),
        *(("rules_version", INTEGER, None if version is None else str(version)),),
        *(("cap", TEXT, cap and cap.text), ("is_passive", YES, "1" if is_passive else None)),
        *(("expires_on", TEXT, expires_on), ("brand", TEXT, brand), ("measures", TEXT, measures)),
    )
    return tuple((name, kind, value) for name, kind, value in told if value is not None)


@lru_cache(maxsize=4096)
def _common_bytes(*values: Any) -> bytes:
    return encoded(_common(*values))


def shown_bytes(entry: Entry) -> bytes:
    """Return shown_of, encoded: in a third of the time, because this is done for each event."""
    draft = entry.draft
    seq, balance = str(entry.seq), str(entry.balance)
    own = f"3:seqi{len(seq)}:{seq}{_earned(draft.kind, draft.points)}7:balancei{len(balance)}:{balance}"
    return own.encode() + _common_bytes(*_common_values(draft))


@lru_cache(maxsize=1024)
def _earned(kind: EntryKind, points: int) -> str:
    return encoded([("kind", TEXT, kind.value), ("points", INTEGER, str(points))]).decode()


def hidden_bytes(entry: Entry) -> bytes:
    """Return hidden_of, encoded: in a third of the time for what an event has earned."""
    draft, account, at = entry.draft, entry.account_id, entry.created_at
    event = draft.event_id
    if event is None or draft.reward_id or draft.reverses or draft.held_at or draft.reason:
        return encoded(hidden_of(entry))
    told = (
        f"10:account_idt{len(account)}:{account}10:created_att{len(at)}:{at}8:event_idt{len(event)}:{event}"
    )
    return told.encode() if told.isascii() else encoded(hidden_of(entry))


def hidden_of(entry: Entry) -> list[Field]:
    """Return the fields of an entry that an erasure takes away."""
    draft = entry.draft
    values = (
        *(("account_id", entry.account_id), ("created_at", entry.created_at), ("event_id", draft.event_id)),
        *(("reward_id", draft.reward_id), ("reverses", draft.reverses), ("held_at", draft.held_at)),
        ("reason", draft.reason),
    )
    return [(name, TEXT, value) for name, value in values if value is not None]


def fields_of(row: Mapping[str, Any], names: Mapping[str, str]) -> list[Field]:
    """Return a lake's or warehouse's row in the same form as shown_of or hidden_of."""
    return [(name, kind, _text(row[name])) for name, kind in names.items() if _is_told(row.get(name), kind)]


def _is_told(value: Any, kind: str) -> bool:
    return bool(value) if kind == YES else value is not None


def _text(value: Any) -> str:
    if isinstance(value, datetime):  # the warehouse's have no zone, and are UTC
        return stamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return value.isoformat()
    return str(int(value)) if isinstance(value, (bool, int)) else str(value)


def commitment_of(entry: Entry, salt: bytes) -> bytes:
    """Return the commitment to what an erasure takes away of an entry."""
    return commitment(entry_salt(salt, entry.seq), hidden_bytes(entry))


def content_of(entry: Entry, salt: bytes) -> bytes:
    """Return the digest of an entry without its predecessor."""
    return content(shown_bytes(entry), commitment_of(entry, salt))


def sealed(entries: Sequence[Entry], head: Head | None, salt: bytes) -> list[Entry]:
    """Give appended entries their hashes. head: what they build on. salt: drawn in case a chain begins here.

    A chain begins with an account, or where the head has no hash: an earlier version has written it. Without
    a salt no chain begins, and the entries have no hashes. An EARN entry gets none, because it may be
    carried, unless it is the last: its hash follows.
    """
    chain = head.chain if head else b""
    if not chain and not salt:
        return list(entries)
    begins = b"" if chain else salt
    before, salt = (chain[:DIGEST_BYTES], chain[DIGEST_BYTES:]) if chain else (ZERO, salt)
    found = []
    last = len(entries) - 1
    for number, entry in enumerate(entries):
        before = link(before, content_of(entry, salt))
        is_told = number == last or begins or entry.draft.kind is not EntryKind.EARN
        found.append(replace(entry, chain=before + salt, begins=begins) if is_told else entry)
        begins = b""
    return found


def with_proof(decision: Decision, salt: bytes) -> Decision:
    """Return a decision whose new entries have their hashes, and whose profile goes on from the last one.

    salt: drawn in case a chain begins.
    """
    if not decision.entries:
        return decision
    entries = sealed(decision.entries, decision.head, salt)
    return replace(decision, entries=entries, profile=replace(decision.profile, head=entries[-1].head))
