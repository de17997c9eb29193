"""The subscription routes for the OpenAPI document."""

from typing import Any

from ingest.engagement import engagement_schemas
from ingest.questions.subscription_schemas import STORED, SUBSCRIPTION, SUBSCRIPTION_ID

SUBSCRIPTION_PATH = {
    "name": "subscription_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": SUBSCRIPTION_ID},
}
# (method, path, what it does, parameters, body, success status, answer), as in ingest.openapi
SUBSCRIPTION_ROUTES: list[Any] = [
    ("post", "/v1/subscriptions", "Be told of questions on a phone", [], SUBSCRIPTION, 201, STORED),
    (
        *("delete", "/v1/subscriptions/{subscription_id}", "Be told nothing more there"),
        *([SUBSCRIPTION_PATH], None, 204, engagement_schemas.ANY),
    ),
]
