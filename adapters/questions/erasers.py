"""Erases a person's answers, stats and phones (docs/rules.md, rule 10)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import delete_all, get_all
from adapters.privacy.erasers import Clients, ItemEraser, PartErasers, StoreEraser, partition_eraser
from adapters.questions.response_store import ResponseStore
from adapters.questions.subscription_store import KEY, keys_of, subscription_counter, subscription_from
from rules.lake.pseudonyms import pseudonym
from rules.parts import Part
from rules.privacy.erasures import PHONES, Person
from rules.questions.questions import open_questions_counter


def response_eraser(dynamodb: Any, table: str) -> ItemEraser:
    """Return the eraser of a person's answers, which an index finds by the person's hashes.

    An answer of the last moments may be missing, because the index follows the table. A later sweep of the
    erasure finds it.
    """
    store = ResponseStore(dynamodb, table)
    return ItemEraser(
        dynamodb,
        table,
        ("question_id", "response_id"),
        lambda person: store.of_person(person.hashes),
    )


@dataclass(frozen=True, slots=True)
class SubscriptionEraser:
    """Erases a user's phones. The user's counter in the table Limits lists them."""

    lake_kind: ClassVar[str] = PHONES
    dynamodb: Any
    sns: Callable[[], Any]
    table: str
    limits_table: str

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the subscriptions' own items."""
        key = {"counter": subscription_counter(person.user_id)}
        for counter in get_all(self.dynamodb, self.limits_table, [key] if person.user_id else []):
            keys = [{KEY: subscription_id} for subscription_id in counter.get("held", {}).get("M", {})]
            for subscription in get_all(self.dynamodb, self.table, keys):
                if subscription.get("owner", {}).get("S") == person.user_id:
                    yield subscription

    def find(self, person: Person) -> list[Item]:
        """Return the subscriptions' own items."""
        return list(self.items(person))

    def remove(self, items: Sequence[Item]) -> None:
        """Delete the phones' endpoints, then the subscriptions with their markers.

        A subscription's own item goes last: as long as it exists, a repeated erasure finds the rest.
        """
        for item in items:
            subscription = subscription_from(decode_item(item))
            if subscription.endpoint_arn:
                self.sns().delete_endpoint(EndpointArn=subscription.endpoint_arn)
            item_key, *marker_keys = keys_of(subscription)
            keys = [encode_item({KEY: key}) for key in (*marker_keys, item_key)]
            delete_all(self.dynamodb, self.table, keys)

    def lake_names(self, items: Sequence[Item]) -> Iterator[str]:
        """Return the names of phones in the lake, which only these items tell."""
        return (pseudonym(decode_item(item)[KEY]) for item in items)


def erasers(clients: Clients, tables: Any) -> Mapping[str, StoreEraser]:
    """Return erasers by the stores' names in the inventory."""
    dynamodb = clients.dynamodb
    return {
        "Responses": response_eraser(dynamodb, tables.responses_table),
        "UserStats": partition_eraser(
            dynamodb, tables.user_stats_table, ("fingerprint_hash",), lambda person: person.hashes
        ),
        "Subscriptions": SubscriptionEraser(
            dynamodb, clients.sns, tables.subscriptions_table, tables.limits_table
        ),
    }


def counters(user_id: str) -> tuple[str, ...]:
    """Return a user's counters of places that are held."""
    return subscription_counter(user_id), open_questions_counter(user_id)


ERASERS = PartErasers(
    Part.QUESTIONS,
    dict.fromkeys(("responses_table", "subscriptions_table", "user_stats_table"), str),
    erasers,
    ("subscriptions", "answers", "relayed answers", "questions"),
    counters,
)
