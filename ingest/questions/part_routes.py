"""The routes of questions, as the OpenAPI document has them."""

from collections.abc import Collection
from typing import Any

from ingest.web.part_routes import PartRoutes


def apps() -> Collection[Any]:
    """Return what declares the routes."""
    # Here, because whoever asks for codes needs no door.
    from ingest.questions import polls_api, questions_api  # noqa: PLC0415 (see above)

    return questions_api.app, polls_api.app


ROUTES = PartRoutes(apps, "Questions", r".* /v1/(questions|agents|stats|subscriptions)\b.*|.*/answers$")
