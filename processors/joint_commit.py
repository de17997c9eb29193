"""Commits decisions about several accounts with few requests: the ledger entries of many in one transaction.

Each account's entries keep their own conditions. If one of them does not hold, none is written, and the
caller goes on with each account alone. Units are the same; a batch of 100 users takes 4 transactions and not
100. What comes after the transaction (carried entries, days, profiles) is finished by whoever comes next, as
always.
"""

from collections.abc import Iterator, Mapping

from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import Appending, HeadMoved
from adapters.logs import Logger
from rules.engagement.account_state import Decision

logger = Logger(service="engagement")
# Of at most 100. A transaction that meets another writer is lost for all of its accounts.
ACTIONS_MAX = 50


def write_together(accounts: AccountStore, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """Write the ledger entries of decisions, by user; returns those whose entries are written."""
    written: dict[str, Decision] = {}
    for chunk in _chunks(accounts, decisions):
        try:
            accounts.ledger.append_many(list(chunk.values()))
        except HeadMoved:
            continue
        except Exception:  # whatever it is, each account alone meets it again, and tells of it
            logger.warning("not together", extra={"users": len(chunk)}, exc_info=True)
            continue
        written |= {user: decisions[user] for user in chunk}
    return written


def _chunks(accounts: AccountStore, decisions: Mapping[str, Decision]) -> Iterator[dict[str, Appending]]:
    """Yield what fits into one transaction, by user. Who is too large for any is left out."""
    chunk: dict[str, Appending] = {}
    size = 0
    for user, decision in decisions.items():
        if not decision.entries:
            continue
        appending = accounts.ledger.appending(decision.head, decision.entries)
        own = len(appending.actions)
        if own > ACTIONS_MAX:
            continue
        if size + own > ACTIONS_MAX:
            yield chunk
            chunk, size = {}, 0
        chunk[user] = appending
        size += own
    if chunk:
        yield chunk
