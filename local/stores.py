"""A stack's stores, for commands that look at them or change them from outside."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from adapters.book_store import BookStore
from adapters.engagement.account_store import AccountContended, AccountStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.objects import S3Objects
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import Tombstones
from local.stack import Stack

if TYPE_CHECKING:
    from analytics.warehouse.warehouse import Warehouse

READERS = 8
# What reading an account raises whose items are not as they were written.
UNREADABLE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)
Account = TypeVar("Account")
Result = TypeVar("Result")


def accounts_of(stack: Stack) -> AccountStore:
    """Return a stack's accounts; they know no amnesties."""
    dynamodb = stack.client("dynamodb")
    ledger = LedgerStore(dynamodb, stack.tables["RewardsLedger"])
    profiles, days = stack.tables["UserStreaks"], stack.tables["DailyActivity"]
    shards, books = int(stack.outputs["LeaderboardShards"]), books_of(stack)
    return AccountStore(
        *(dynamodb, profiles, days, ledger, shards),
        daily_terms=books.daily_terms,
        pay_bonuses=books.pay_bonuses,
    )


def cache_of(stack: Stack) -> EngagementCache:
    """Return a stack's cache; that of one on AWS is out of reach: a profile in it may be five minutes old."""
    return EngagementCache(stack.redis_url if stack.is_laptop else "")


def books_of(stack: Stack) -> BookStore:
    """Return a stack's books of rules."""
    return BookStore(stack.client("dynamodb"), stack.tables["RuleBooks"])


def lake_of(stack: Stack, bucket: str | None = None) -> S3Objects:
    """Return a stack's lake. bucket: of a stack that is gone, with this one's credentials."""
    return S3Objects(stack.client("s3"), bucket or stack.outputs["LakeBucketName"])


def tombstones_of(stack: Stack) -> Tombstones:
    """Return who was erased, as a stack knows it."""
    key = KeyedHash(lambda: stack.client("secretsmanager"), stack.output("ErasureSecretId", "erasures"))
    return Tombstones(stack.client("dynamodb"), stack.tables["Erasures"], key)


def warehouse_of(stack: Stack) -> "Warehouse":
    """Return the warehouse that the stack's function loads, with this command's credentials and region."""
    from analytics.warehouse.warehouse import warehouse_at

    function = stack.outputs["WarehouseFunctionName"]
    configuration = stack.client("lambda").get_function_configuration(FunctionName=function)
    url = configuration["Environment"]["Variables"].get("WAREHOUSE_URL", "")
    return warehouse_at(url, data_api=stack.client("redshift-data"))


def over_accounts(
    accounts: Iterable[Account], work: Callable[[Account], Result], name: Callable[[Account], str] = str
) -> Iterator[Result | str]:
    """Yield what `work` makes of each account, some accounts at a time.

    For an account that cannot be read, or that is busy all the time, it yields a sentence. Such an account
    stops no other.
    """

    def result_of(account: Account) -> Result | str:
        try:
            return work(account)
        except (AccountContended, *UNREADABLE) as error:
            return f"{name(account)}: {type(error).__name__}: {error}"

    with ThreadPoolExecutor(READERS) as pool:
        for some in chunks(accounts, READERS * 8):
            yield from pool.map(result_of, some)
