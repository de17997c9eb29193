"""All copies of an account's ledger against each other, and against the last root (rule 19)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rules.engagement.proof import (
    DROPPED,
    FLIPPED,
    LedgerFault,
    LedgerLink,
    TreeLeaf,
    chain_differences,
    chain_of,
    own_faults,
)

TABLE = "table"


@dataclass(frozen=True, slots=True)
class CopyFault:
    """What is wrong with one copy of an account's ledger."""

    account: str
    copy: str
    fault: LedgerFault

    @property
    def text(self) -> str:
        """The fault in words."""
        return f"{self.account}: {self.copy}: {self.fault.text}"


def audited(
    account: str,
    copies: Mapping[str, Sequence[LedgerLink]],
    leaf: TreeLeaf | None = None,
    until: Mapping[str, int] | None = None,
) -> Iterator[CopyFault]:
    """Yield what is wrong with the copies of one account, and where.

    The sound copy is one whose chain follows, and that has the leaf of the last root: the table's, if it is
    sound, because it alone tells hashes; else another that agrees with the leaf. leaf: None: no root has the
    account. until: by copy, up to which seq it must be whole; entries after it may be on their way.
    """
    names = sorted(copies, key=lambda name: name != TABLE)
    sound = next((name for name in names if _is_sound(account, copies[name], leaf)), None)
    if sound is None:
        yield from _alone(account, copies, leaf)
        return
    for name in names:
        last = (until or {}).get(name, copies[sound][-1].seq)
        for fault in chain_differences(copies[name], copies[sound]) if name != sound else ():
            if fault.seq <= last or fault.what != DROPPED:
                yield CopyFault(account, name, fault)


def _alone(
    account: str, copies: Mapping[str, Sequence[LedgerLink]], leaf: TreeLeaf | None
) -> Iterator[CopyFault]:
    """Yield what each copy tells against itself, where none of them leads to the root."""
    for name, links in copies.items():
        faults = own_faults(account, links)
        yield from (CopyFault(account, name, each) for each in faults)
        if leaf and links and not faults:
            yield CopyFault(
                account, name, LedgerFault(leaf.seq, f"{FLIPPED}, or one before it: the root differs")
            )


def _is_sound(account: str, links: Sequence[LedgerLink], leaf: TreeLeaf | None) -> bool:
    if not links or own_faults(account, links):
        return False
    chain = chain_of(account, links)
    if chain is None or leaf is None:
        return chain is not None or leaf is None
    return chain.leaf_at(leaf.seq) == leaf.digest
