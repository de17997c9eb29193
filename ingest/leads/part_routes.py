"""The routes of leads, as the OpenAPI document has them."""

from collections.abc import Collection
from typing import Any

from ingest.web.part_routes import PartRoutes


def apps() -> Collection[Any]:
    """Return what declares the routes."""
    # Here, because whoever asks for codes needs no door.
    from ingest.leads import hooks_api, identity_api, leads_api  # noqa: PLC0415 (see above)

    return hooks_api.app, leads_api.app, identity_api.app


ROUTES = PartRoutes(apps, "Leads", r".* /v1/(leads|hooks)\b.*")
