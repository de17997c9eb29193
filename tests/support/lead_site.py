"""A consumer of leads' webhooks over real stores, which can die before or after any call."""

from typing import Any
from uuid import uuid4

from adapters.leads.lead_event_store import LeadEventStore, OrderStore
from adapters.leads.lead_queue import LeadPayloads
from adapters.platform.items import decode_item
from adapters.platform.tables import get_all
from ingest.leads import sources
from ingest.leads.lead_consumer import LeadConsumer
from rules.leads.lead_events import SORT_KEY, LeadEvent, from_item
from tests.support.engine import Engine
from tests.support.identity_server import Registry
from tests.support.webhooks import NOW, ORDER


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """Passes calls on and counts them; dies before or after one of them."""

    def __init__(self, real: Any, life: "Life") -> None:
        self._real, self._life = real, life

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if not callable(real) or name in ("exceptions", "meta"):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            self._life.step()
            answer = real(*args, **kwargs)
            self._life.step()
            return answer

        return call


class Life:
    """steps_left: before and after each call is a step; None: immortal."""

    def __init__(self) -> None:
        self.steps_left: int | None = None

    def step(self) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise Died


class Site:
    """A consumer over real stores, with an organization of its own."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self.life, self.registry = Life(), registry
        self.dynamodb, self.s3 = engine.own_client("dynamodb"), engine.client("s3")
        self.organization = f"org-{uuid4()}"
        self.requests: list[str] = []
        note = lambda model, **_: self.requests.append(model.name)  # noqa: E731
        self.dynamodb.meta.events.register("before-call.dynamodb", note)
        mortal_s3 = Mortal(self.s3, self.life)
        identities: Any = Mortal(registry.store, self.life)
        self.consumer = LeadConsumer(
            identities,
            LeadEventStore(Mortal(self.dynamodb, self.life), "Event", "IdempotencyKeys"),
            OrderStore(Mortal(self.dynamodb, self.life), "Event", "IdempotencyKeys"),
            LeadPayloads(lambda: mortal_s3, "payloads"),
            "USD",
        )
        self.events = LeadEventStore(self.dynamodb, "Event")

    def message(self, payload: Any, source: str = "ecommerce", **more: Any) -> dict[str, Any]:
        return {"organization_id": self.organization, "source": source, "payload": payload, **more}

    def send(self, payload: Any, source: str = "ecommerce", **more: Any) -> None:
        self.consumer.handle(self.message(payload, source, **more), NOW)

    def stored(self) -> list[LeadEvent]:
        """Every stored event of this organization."""
        return [event for source in (*sources.names(), "identity") for event in self.of_source(source)]

    def of_source(self, source: str) -> list[LeadEvent]:
        found = self.dynamodb.query(
            TableName="Event",
            IndexName="idempotency-index",
            KeyConditionExpression="#source = :source",
            ExpressionAttributeNames={"#source": "source"},
            ExpressionAttributeValues={":source": {"S": f"{self.organization}/{source}"}},
        )
        keys = [{name: each[name] for name in ("lead_organization_id", SORT_KEY)} for each in found["Items"]]
        stored = get_all(self.dynamodb, "Event", map(decode_item, keys))
        return sorted(
            (from_item(decode_item(each)) for each in stored), key=lambda each: each.external_event_id
        )


def order(number: int, **more: Any) -> dict[str, Any]:
    return {**ORDER, "id": number, **more}
