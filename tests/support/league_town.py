"""Users in leagues, with tables of their own, and processes that join and close."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.leagues import Leagues, LeagueStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all, scan_all
from adapters.privacy.erasers import Clients
from adapters.privacy.stores import ErasureSettings, all_stores
from adapters.settings import read_settings
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyRules, DailyTerms
from rules.book.league_rules import LeagueRules
from rules.engagement.account_state import Profile
from rules.engagement.leagues import Membership, Place
from rules.engagement.period_points import PeriodPoints
from rules.engagement.periods import Period, period_named
from rules.privacy.erasures import Person, PersonKind, plan_of
from tests.support.template import table_definition

RULES = LeagueRules("weekly", ("bronze", "silver", "gold"), 10, 3, 3)
BOARDS = (BoardRule("weekly", BoardPeriod.WEEK),)


def leagues_of(rules: LeagueRules, boards: tuple[BoardRule, ...] = BOARDS) -> DailyTerms:
    """What books say that have had these leagues for ever."""
    return ((date.min, DailyRules(boards=boards, leagues=rules)),)


TERMS = leagues_of(RULES)
W48, W49, W50, W51 = (period_named(f"2026-W{number}") for number in range(48, 52))
IN_W48 = datetime(2026, 11, 26, 12, tzinfo=UTC)
IN_W49, IN_W50 = datetime(2026, 12, 3, 12, tzinfo=UTC), datetime(2026, 12, 10, 12, tzinfo=UTC)
CLOSED_W48 = datetime(2026, 11, 30, 18, 10, tzinfo=UTC)
FOREVER = float("inf")


def player(user_id: str, points: Mapping[Period, int], **fields: Any) -> Profile:
    """A profile with points of some weeks."""
    counted = tuple(PeriodPoints(week, each) for week, each in sorted(points.items()))
    return Profile(user_id, 1, updated_at="x", period_points=counted, **fields)


class Streamed:
    """A client that keeps what a table's stream has of the items that it puts, in order."""

    def __init__(self, real: Any, table: str) -> None:
        self._real, self._table = real, table
        self.exceptions = real.exceptions
        self.records: list[dict[str, Any]] = []

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._real, operation)

    def put_item(self, **arguments: Any) -> Any:
        answer = self._real.put_item(**arguments)
        if arguments["TableName"] == self._table:
            change = {"NewImage": arguments["Item"], "SequenceNumber": str(len(self.records))}
            self.records.append({"eventName": "MODIFY", "dynamodb": change})
        return answer


@dataclass
class LeagueTown:
    dynamodb: Any
    terms: DailyTerms = TERMS
    name: str = field(default_factory=lambda: str(uuid4()))
    scores: dict[str, dict[Period, int]] = field(default_factory=dict)  # by user, of weeks

    def __post_init__(self) -> None:
        for table in ("UserStreaks", "DailyActivity", "Boards"):
            self.dynamodb.create_table(**table_definition(table, self.table(table)))

    def table(self, kind: str) -> str:
        return f"{kind}-{self.name}"

    def put(self, profiles: Iterable[Profile]) -> None:
        put_all(
            self.dynamodb, self.table("UserStreaks"), [encode_item(profile_attributes(p)) for p in profiles]
        )

    def process(self, client: Any = None) -> Leagues:
        """What a new process knows."""
        dynamodb = client or self.dynamodb
        days, ledger = self.table("DailyActivity"), LedgerStore(dynamodb, "")
        accounts = AccountStore(
            dynamodb, self.table("UserStreaks"), days, ledger, 0, daily_terms=lambda: self.terms
        )
        return Leagues(LeagueStore(dynamodb, self.table("Boards"), days), accounts)

    def streamed(self) -> Streamed:
        """A client for processes whose places are in a stream."""
        return Streamed(self.dynamodb, self.table("DailyActivity"))

    def play(
        self, week: Period, scores: Mapping[str, int], now: datetime, process: Leagues | None = None
    ) -> None:
        """Let users earn points of a week, and join its league one after the other."""
        leagues = process or self.process()
        for user, points in scores.items():
            self.scores.setdefault(user, {})[week] = points
            profile = player(user, self.scores[user])
            self.put([profile])
            leagues.join_all([profile], now)

    def membership(self, user: str) -> Membership:
        return self.process().store.membership(user)

    def sweep(self, user: str, client: Any = None) -> None:
        """Delete a user from these tables, as a sweep of an erasure does; for use with an engine's environment."""
        own = {"user_streaks": "UserStreaks", "daily_activity": "DailyActivity", "boards": "Boards"}
        names: dict[str, Any] = {f"{name}_table": self.table(kind) for name, kind in own.items()}
        settings = replace(read_settings(ErasureSettings), **names)
        clients = Clients(client or self.dynamodb, lambda: None, lambda: None)
        stores, person = all_stores(clients, settings, IN_W48), Person("", user)
        for each in plan_of(PersonKind.USER):
            if each.name in own.values():
                stores[each.name].remove(stores[each.name].find(person))

    def rosters(self) -> dict[Place, frozenset[str]]:
        """The members that cohorts name."""
        store = self.process().store
        found: dict[Place, frozenset[str]] = {}
        for item in scan_all(self.dynamodb, TableName=self.table("Boards")):
            board = item["board"]["S"].split("#")
            if len(board) == 3:
                place = Place(board[1], int(board[2]), int(item["part"]["S"]))
                cohort = store.cohort(place)
                found[place] = cohort.members if cohort else frozenset()
        return found

    def stored(self) -> dict[str, list[dict[str, Any]]]:
        """All items of leagues, in order, without the mark that a week is done."""
        items = {}
        for kind, key in (("DailyActivity", "user_id"), ("Boards", "board")):
            found = scan_all(self.dynamodb, TableName=self.table(kind))
            kept = [item for item in found if item.get("part", {}).get("S") != "done"]
            items[kind] = sorted(kept, key=lambda item: (item[key]["S"], item.get("part", {}).get("S", "")))
        return items
