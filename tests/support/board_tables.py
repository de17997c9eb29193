"""Tables of profiles and boards with names of their own, so that no other test's users are in them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.boards import BoardNames, BoardSnapshots, LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.period_boards import PeriodPages, StandingStore
from adapters.platform.items import encode_item
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.tables import put_all
from ingest.engagement.leaderboards import Leaderboards
from ingest.engagement.period_boards import PeriodBoards
from ingest.engagement.profiles import Profiles
from processors.ranks import RankBuilder
from rules.book.daily import DailyTerms
from rules.engagement.account_state import Profile
from rules.engagement.rest_days import NO_TERMS
from tests.support.books import KnownBooks
from tests.support.template import table_definition

SHARDS = 2


@dataclass
class BoardTables:
    dynamodb: Any
    users: str = field(default_factory=lambda: f"UserStreaks-{uuid4()}")
    boards: str = field(default_factory=lambda: f"Boards-{uuid4()}")
    terms: DailyTerms = NO_TERMS  # what the books say of boards

    def __post_init__(self) -> None:
        self.dynamodb.create_table(**table_definition("UserStreaks", self.users))
        self.dynamodb.create_table(**table_definition("Boards", self.boards))

    def put(self, crowd: Iterable[Profile]) -> None:
        put_all(self.dynamodb, self.users, [encode_item(profile_attributes(each, SHARDS)) for each in crowd])

    def builder(self, cache: EngagementCache | None = None) -> RankBuilder:
        cache = cache or EngagementCache("")
        terms = lambda: self.terms  # noqa: E731 (a test may change them)
        return RankBuilder(self.dynamodb, self.users, self.boards, self.index(), cache, None, terms)

    def index(self) -> LeaderboardIndex:
        return LeaderboardIndex(self.dynamodb, self.users, SHARDS)

    def snapshots(self) -> BoardSnapshots:
        return BoardSnapshots(self.dynamodb, self.boards)

    def leaderboards(self, cache: EngagementCache | None = None) -> Leaderboards:
        """The boards as a new process sees them."""
        cache = cache or EngagementCache("")
        ledger = LedgerStore(self.dynamodb, "RewardsLedger")
        accounts = AccountStore(self.dynamodb, self.users, "DailyActivity", ledger, SHARDS)
        profiles = Profiles(
            accounts, EventStore(self.dynamodb, "BPEvents"), cache, Settler(accounts, KnownBooks())
        )
        return Leaderboards(profiles, self.snapshots(), self.index(), cache)

    def period_boards(self, erased: Collection[str] = ()) -> PeriodBoards:
        """The boards of the book as a new process sees them."""
        boards = self.leaderboards()
        return PeriodBoards(
            boards.profiles,
            boards.snapshots,
            StandingStore(self.dynamodb, self.boards),
            PeriodPages(self.dynamodb, self.boards),
            BoardNames(self.dynamodb, self.users, KeyedHash(Secrets, "key")),
            LedgerStore(self.dynamodb, "RewardsLedger"),
            lambda: self.terms,
            erased.__contains__,
        )


class Secrets:
    """One secret, which every stack of these tests has."""

    def get_secret_value(self, **_: Any) -> dict[str, str]:
        return {"SecretString": "a secret of the tests"}
