"""Routes of amnesties, all of them for admins."""

from typing import Any

from adapters import clock
from adapters.engagement.amnesty import DeclaredMeanwhile
from ingest.engagement.amnesty.acts import amnesty_view, applied_view
from ingest.engagement.amnesty.amnesty_schemas import AMNESTIES, AMNESTY, APPLICATION, APPLIED, DECLARATION
from ingest.engagement.users.parts import app, parts
from ingest.web.api import GONE
from ingest.web.caller import ApiError


@app.route("GET /v1/amnesties", answer=AMNESTIES)
def get_amnesties() -> dict[str, Any]:
    """All amnesties (admins)."""
    app.admin()
    return {"amnesties": list(map(amnesty_view, parts().amnesties.store.look().known))}


@app.route("POST /v1/amnesties", body=DECLARATION, status=201, answer=AMNESTY)
def post_amnesty() -> dict[str, Any]:
    """Declare that an outage counts against nobody (admins).

    The dates that it touched are no misses. Apply it to all who have lost something.
    """
    author = app.admin().user_id
    try:
        return amnesty_view(parts().amnesties.declare(app.body(), author, clock.now()))
    except DeclaredMeanwhile:
        reason = "somebody else has declared one at the same time: look at it, then declare again"
        raise ApiError(409, "conflict", reason) from None


@app.route("POST /v1/amnesties/{number}/apply", body=APPLICATION, answer=APPLIED)
def post_amnesty_application(number: str) -> dict[str, Any]:
    """Apply an amnesty, or its revocation, to some users (admins)."""
    app.admin()
    body = app.body()
    users = [each for each in body["users"] if not parts().is_erased(each)]
    if not users:
        raise ApiError(410, "erased", f"each of these users {GONE}")
    is_dry = body.get("dry_run", False)
    return applied_view(parts().amnesties.apply(number, users, clock.now(), is_dry=is_dry))


@app.route("POST /v1/amnesties/{number}/revoke", answer=AMNESTY)
def post_amnesty_revocation(number: str) -> dict[str, Any]:
    """Revoke an amnesty (admins)."""
    app.admin()
    return amnesty_view(parts().amnesties.revoke(number, clock.now()))
