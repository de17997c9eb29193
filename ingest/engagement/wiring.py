"""Puts together from a function's settings what takes its events."""

from adapters.book import BookStore
from adapters.engagement.claims import ClaimStore, ZoneStore
from adapters.engagement.event_store import EventStore
from adapters.platform.aws import client
from adapters.platform.turn import fenced
from adapters.privacy.tombstones import tombstones_of
from adapters.settings.event_doors import EventsApiSettings, EventsStreamSettings
from ingest.engagement.accept import Acceptor


def acceptor(config: EventsApiSettings | EventsStreamSettings) -> Acceptor:
    """Return an Acceptor."""
    dynamodb = fenced(client("dynamodb"))
    return Acceptor(
        ClaimStore(dynamodb, config.idempotency_keys_table),
        EventStore(dynamodb, config.bp_events_table),
        ZoneStore(dynamodb, config.user_streaks_table),
        BookStore(dynamodb, config.rule_books_table),
        tombstones_of(config),
    )
