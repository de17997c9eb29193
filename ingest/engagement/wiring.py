"""Puts together from a function's settings what takes its events."""

from adapters.book.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.claims import ClaimStore
from adapters.engagement.event_store import EventStore, Payloads
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.offline.stretch_store import StretchStore
from adapters.platform.aws import client
from adapters.privacy.tombstones import tombstones_of
from adapters.settings.engagement import EventsApiSettings, EventsStreamSettings
from ingest.engagement.accept import Acceptor
from ingest.engagement.receipts.giving import receipt_keys
from ingest.engagement.receipts.proving import Prover


def acceptor(config: EventsApiSettings | EventsStreamSettings) -> Acceptor:
    """Return an Acceptor. It makes the S3 client only when a payload needs one."""
    dynamodb = client("dynamodb")
    accounts = AccountStore(dynamodb, config.user_streaks_table, "", LedgerStore(dynamodb, ""), 1)
    return Acceptor(
        ClaimStore(dynamodb, config.idempotency_keys_table),
        EventStore(dynamodb, config.bp_events_table, config.index_idempotency_keys),
        accounts,
        Payloads(lambda: client("s3"), config.payload_bucket),
        BookStore(dynamodb, config.rule_books_table),
        tombstones_of(config),
    )


def prover(config: EventsApiSettings) -> Prover:
    """Return what checks time receipts. It reads the keys when the first receipt comes."""
    stretches = StretchStore(client("dynamodb"), config.idempotency_keys_table, config.bp_events_table)
    return Prover(receipt_keys(config.receipt_secret_arn), stretches, tombstones_of(config))
