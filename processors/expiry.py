"""Writes each hour the entries of expired points and of bonuses (docs/rules.md, rules 11, 15), user by user.

No user waits for it, because a read or a command settles its account first. This run settles the accounts of
users who stay away. So the lake and the liability have all expired points and bonuses within the hour.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_items import EXPIRY_SHARDS
from adapters.engagement.account_store import AccountContended, AccountStore, ExpiryIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.logs import Logger
from adapters.platform.aws import is_away
from adapters.platform.tables import Unprocessed
from rules.book.point_rules import last_expired
from rules.privacy.tombstones import SafeToLog

# A run ends after so long, because the function has 15 minutes. The next run continues.
RUN_SECONDS = 780
logger = Logger(service="expiry")


@dataclass(frozen=True, slots=True)
class ExpirySettings:
    """The tables of accounts, and Redis."""

    leaderboard_shards: int
    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    redis_url: str


class NotSettled(SafeToLog, Exception):
    """Some accounts could not be settled, and a later attempt will not succeed by itself."""


@dataclass(frozen=True, slots=True)
class ExpirySweep:
    """Settles all accounts that are due."""

    index: ExpiryIndex
    settler: Settler
    cache: EngagementCache

    def run(self, now: datetime, until: float) -> dict[str, Any]:
        """Settle all accounts that are due. Returns {"settled", "failed"}, numbers of accounts, and
        "is_whole", whether all due ones were tried. until: when to stop, by time.monotonic(). An account that
        fails, or is busy, or whose store is away, stays due for the next run.
        """
        settled = failed = 0
        for user in self.index.due(last_expired(now), now.hour % EXPIRY_SHARDS):
            if time.monotonic() > until:
                return {"settled": settled, "failed": failed, "is_whole": False}
            try:
                self.cache.write_through([self.settler.settle(user, now)])
                settled += 1
            except Exception as error:  # whatever one account raises, the others are still settled
                if is_away(error) or isinstance(error, (AccountContended, Unprocessed)):
                    logger.warning("to come again", extra={"user_id": user}, exc_info=True)
                    continue
                logger.exception("not settled", extra={"user_id": user})
                failed += 1
        return {"settled": settled, "failed": failed, "is_whole": True}


@bootstrap(ExpirySettings)
def _parts(config: ExpirySettings, client: ClientOf) -> ExpirySweep:
    dynamodb = client("dynamodb")
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    books = BookStore(dynamodb, config.rule_books_table)
    accounts = AccountStore(
        dynamodb,
        config.user_streaks_table,
        config.daily_activity_table,
        ledger,
        config.leaderboard_shards,
        daily_terms=books.daily_terms,
        pay_bonuses=books.pay_bonuses,
    )
    return ExpirySweep(
        ExpiryIndex(dynamodb, config.user_streaks_table, books.pay_bonuses),
        Settler(accounts, books),
        EngagementCache(config.redis_url),
    )


@logger.inject_lambda_context
def handler(_event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Lambda entry: the schedule. Returns what ExpirySweep.run does; raises NotSettled at its end."""
    counts = _parts().run(clock.now(), time.monotonic() + RUN_SECONDS)
    logger.info("swept", extra=counts)
    if counts["failed"]:
        raise NotSettled(f"{counts['failed']} accounts, which the log names")
    return counts
