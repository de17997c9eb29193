"""Seals (rule 19): the canonical form of a ledger entry, and the hash that it gets when it is appended.

A digest has 32 bytes: SHA-256 over a first byte, which says what is hashed, and the content. Leaves and nodes
of the tree have the first bytes 0 and 1, as in RFC 6962. local/check_proof.py has the same a second time, on
purpose: a verifier shares nothing with the writer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from rules.days import stamp
from rules.engagement.account_state import Decision
from rules.engagement.ledger import Draft, Entry, EntryKind, Head

DIGEST_BYTES = 32
SALT_BYTES = 16
ZERO = bytes(DIGEST_BYTES)
LEAF, NODE, ENTRY_SALT, COMMITMENT, CONTENT, LINK, TAG = (bytes([each]) for each in range(7))
NUMBER_BYTES = 8
# Kinds of values, so that the number 1 and the text "1" are not the same.
INTEGER, TEXT, BOOLEAN = "i", "t", "b"
Field = tuple[str, str, str]  # name, kind, value as a text


def encoded_fields(fields: Iterable[Field]) -> bytes:
    """Return fields as bytes that can be read in one way only: each text has its length before it.

    Example: ("seq", "i", "12") is `3:seqi2:12`. The caller leaves out fields without a value.
    """
    return "".join(
        [f"{_length(name)}:{name}{kind}{_length(value)}:{value}" for name, kind, value in fields]
    ).encode()


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def number_bytes(value: int) -> bytes:
    """Return a number that is not below 0 as bytes of one length."""
    return value.to_bytes(NUMBER_BYTES, "big")


def entry_salt(salt: bytes, seq: int) -> bytes:
    """Return the salt of one entry. Somebody who knows it cannot open the commitments of other entries."""
    return sha256(ENTRY_SALT + salt + number_bytes(seq)).digest()


def commitment(salt: bytes, hidden: bytes) -> bytes:
    """Return the commitment to an entry's hidden fields, which nobody can guess without the entry's salt."""
    return sha256(COMMITMENT + salt + hidden).digest()


def content_digest(shown: bytes, commitment_digest: bytes) -> bytes:
    """Return the digest of an entry without its predecessor."""
    return sha256(CONTENT + commitment_digest + shown).digest()


def link_hash(before: bytes, content: bytes) -> bytes:
    """Return an entry's hash: over its predecessor's hash and its own content."""
    return sha256(LINK + before + content).digest()


def tag_of(salt: bytes, account_id: str) -> bytes:
    """Return an account's name in the tree, which does not reveal the user."""
    return sha256(TAG + salt + account_id.encode()).digest()


def leaf_of(tag: bytes, seq: int, newest_hash: bytes) -> bytes:
    """Return an account's leaf. seq, newest_hash: number and hash of its newest entry."""
    return sha256(LEAF + tag + number_bytes(seq) + newest_hash).digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """Return the digest of two digests of the tree."""
    return sha256(NODE + left + right).digest()


# Shown fields that differ from entry to entry
OWN_FIELDS: Mapping[str, str] = {
    "seq": INTEGER,
    "kind": TEXT,
    "points": INTEGER,
    "balance": INTEGER,
}
# Shown fields of which many entries have the same values: their bytes are cached
COMMON_FIELDS: Mapping[str, str] = {
    "event_type": TEXT,
    "activity_date": TEXT,
    "freeze": TEXT,
    "freeze_date": TEXT,
    "rules_version": INTEGER,
    "cap": TEXT,
    "is_passive": BOOLEAN,
    "expires_on": TEXT,
    "brand": TEXT,
    "measures": TEXT,
}
# The fields that stay of an erased person's entry (rules/lake/residue.py), in the order in which they are
# hashed.
SHOWN_FIELDS: Mapping[str, str] = {**OWN_FIELDS, **COMMON_FIELDS}
# The fields that an erasure takes away, or changes.
HIDDEN_FIELDS: Mapping[str, str] = {
    "account_id": TEXT,
    "created_at": TEXT,
    "event_id": TEXT,
    "reward_id": TEXT,
    "reverses": TEXT,
    "held_at": TEXT,
    "reason": TEXT,
}


def shown_fields(entry: Entry) -> list[Field]:
    """Return the fields of an entry that stay when the person is erased."""
    return [*_own_fields(entry), *_common_fields(*_common_values(entry.draft))]


def shown_bytes(entry: Entry) -> bytes:
    """Return shown_fields, encoded."""
    return encoded_fields(_own_fields(entry)) + _common_bytes(*_common_values(entry.draft))


def _own_fields(entry: Entry) -> list[Field]:
    return [
        ("seq", INTEGER, str(entry.seq)),
        ("kind", TEXT, entry.draft.kind.value),
        ("points", INTEGER, str(entry.draft.points)),
        ("balance", INTEGER, str(entry.balance)),
    ]


def _common_values(draft: Draft) -> tuple[Any, ...]:
    """Return the values of COMMON_FIELDS, in their order."""
    return tuple(getattr(draft, name) for name in COMMON_FIELDS)


def _common_fields(*values: Any) -> list[Field]:
    # A freeze note is written as its value, a cap as its text.
    plain = (getattr(value, "value", getattr(value, "text", value)) for value in values)
    return fields_of(dict(zip(COMMON_FIELDS, plain, strict=True)), COMMON_FIELDS)


@lru_cache(maxsize=4096)  # a writer needs it for each event, and there are few kinds and dates
def _common_bytes(*values: Any) -> bytes:
    return encoded_fields(_common_fields(*values))


def hidden_bytes(entry: Entry) -> bytes:
    """Return hidden_fields, encoded."""
    return encoded_fields(hidden_fields(entry))


def hidden_fields(entry: Entry) -> list[Field]:
    """Return the fields of an entry that an erasure takes away."""
    draft = entry.draft
    values = {
        "account_id": entry.account_id,
        "created_at": entry.created_at,
        "event_id": draft.event_id,
        "reward_id": draft.reward_id,
        "reverses": draft.reverses,
        "held_at": draft.held_at,
        "reason": draft.reason,
    }
    return fields_of(values, HIDDEN_FIELDS)


def fields_of(row: Mapping[str, Any], names: Mapping[str, str]) -> list[Field]:
    """Return a row's fields that have a value, in the order of `names`.

    row: of the lake or the warehouse, or an entry's values by name. names: SHOWN_FIELDS, HIDDEN_FIELDS or a
    part of them.
    """
    return [(name, kind, _text(row[name])) for name, kind in names.items() if _has_value(row.get(name), kind)]


def _has_value(value: Any, kind: str) -> bool:
    return bool(value) if kind == BOOLEAN else value is not None


def _text(value: Any) -> str:
    if isinstance(value, datetime):  # those of the warehouse have no zone, and are UTC
        return stamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return value.isoformat()
    return str(int(value)) if isinstance(value, (bool, int)) else str(value)


def commitment_of(entry: Entry, salt: bytes) -> bytes:
    """Return the commitment to the hidden fields of an entry. salt: of its chain."""
    return commitment(entry_salt(salt, entry.seq), hidden_bytes(entry))


def content_of(entry: Entry, salt: bytes) -> bytes:
    """Return the digest of an entry without its predecessor. salt: of its chain."""
    return content_digest(shown_bytes(entry), commitment_of(entry, salt))


def seal_entries(entries: Sequence[Entry], head: Head | None, salt: bytes) -> list[Entry]:
    """Return appended entries with their hashes. head: the entry before them; None: they begin the account.

    salt: for a chain that begins here; b"": none may begin. An account that has entries and no chain gets
    none. EARN entries are returned without their hash, because they may be carried and it can be computed.
    The last entry, and the one that begins the chain, always have one.
    """
    if head is None and salt:
        newest_hash, chain_salt, new_salt = ZERO, salt, salt
    elif head and head.chain:
        newest_hash, chain_salt, new_salt = head.chain[:DIGEST_BYTES], head.chain[DIGEST_BYTES:], b""
    else:
        return list(entries)
    sealed = []
    for number, entry in enumerate(entries, 1):
        newest_hash = link_hash(newest_hash, content_of(entry, chain_salt))
        if number == len(entries) or new_salt or entry.draft.kind is not EntryKind.EARN:
            sealed.append(replace(entry, chain=newest_hash + chain_salt, salt=new_salt))
        else:
            sealed.append(entry)
        new_salt = b""  # only the first entry of a chain has its salt
    return sealed


def with_proof(decision: Decision, salt: bytes) -> Decision:
    """Return a decision whose new entries have their hashes, and whose profile has the last one as head.

    salt: for the chain, if it begins here.
    """
    if not decision.entries:
        return decision
    entries = seal_entries(decision.entries, decision.head, salt)
    return replace(decision, entries=entries, profile=replace(decision.profile, head=entries[-1].head))
