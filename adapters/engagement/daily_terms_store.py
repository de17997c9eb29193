"""What the books say of dates, boards and leagues, and whether they pay for achievements (table RuleBooks).

It is for processes that ask a book for nothing else. They need no document: each version's item in lists has
both (adapters/book_store.py).
"""

import time
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Refresh, query_all
from rules.book.daily import NO_REST, DailyTerms, DatedRules, daily_rules, daily_terms
from rules.days import EPOCH, unstamp

FRESH_SECONDS = 30  # a process uses what it has read for so long
VERSIONS = "versions"  # the partition, as in adapters/book_store.py
# The shipped book's rest days, which count while nothing is published.
SHIPPED = NO_REST


class DailyTermsStore:
    """The terms of all versions, as one process sees them.

    Half a minute is early enough: a version judges dates that begin after it was published, and the first
    such date is over nowhere before ten hours later.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._refresh = Refresh(FRESH_SECONDS)
        self._known: dict[int, DatedRules] = {}  # a version never changes
        self._terms = daily_terms([DatedRules(1, EPOCH, EPOCH, SHIPPED)])
        self._pay_bonuses = False  # the shipped book does not

    def recent(self) -> DailyTerms:
        """Return what the books say of dates, half a minute old at most, unless the table is away."""
        self._refresh.renew_if_over(self._look)
        return self._terms

    def pay_bonuses(self) -> bool:
        """Return whether any version pays for achievements, as old as `recent`."""
        self._refresh.renew_if_over(self._look)
        return self._pay_bonuses

    def _look(self) -> None:
        asked_at = time.monotonic()
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="book = :book AND version > :known",
            ExpressionAttributeValues=encode_item({":book": VERSIONS, ":known": max(self._known, default=0)}),
        )
        for each in map(decode_item, items):
            self._known[each["version"]] = DatedRules(
                each["version"],
                unstamp(each["effective_at"]),
                unstamp(each["published_at"]),
                daily_rules(each.get("daily"), each.get("boards"), each.get("leagues")),
            )
            self._pay_bonuses |= bool(each.get("pays_bonuses"))
        if self._known:
            self._terms = daily_terms(self._known.values())
        self._refresh.renew(asked_at)
