"""A small file that proves one entry, and what came after it, against a root (rule 19)."""

from typing import Any

from rules.engagement.ledger import Entry
from rules.engagement.proving.chains import AccountChain
from rules.engagement.proving.hashes import ZERO, entry_salt
from rules.engagement.proving.sealing import hidden_of, shown_of
from rules.engagement.proving.tree import Path

FORM = "streakline-proof-1"


def proof_of(entry: Entry, chain: AccountChain, head: int, path: Path, root: bytes) -> dict[str, Any]:
    """Return what proves an entry. chain: of the whole journal that it is in.

    head: seq of the account's newest entry in the tree with this root; path: from its leaf. The file has this
    entry in full with its own salt, and of all others digests: it opens nothing else.
    """
    seq = entry.seq
    first = max(each for each in chain.parts if each <= seq) if min(chain.parts) <= seq else 0
    before, salt = chain.parts.get(first) or (ZERO, chain.parts[min(chain.parts)][1])
    after: list[Any] = []
    for each in range(seq + 1, head + 1):
        if each in chain.parts:
            after.append({"begins": each})
        after.append(chain.contents[each].hex())
    return {
        "form": FORM,
        "root": root.hex(),
        "account": {"name": chain.name.hex(), "before": before.hex(), "first": first},
        "entry": {
            "shown": shown_of(entry),
            "hidden": hidden_of(entry),
            "salt": entry_salt(salt, seq).hex(),
            "previous": (ZERO if seq == first else chain.hashes[seq - 1]).hex(),
        },
        "after": after,
        "path": [[side, beside.hex()] for side, beside in path],
    }
