"""Routes of leaderboards, and of the names on them."""

from typing import Any

from adapters import clock
from ingest.engagement.engagement_schemas import ALIAS, ALIAS_VIEW, RANK, TOP_LIST
from ingest.engagement.leaderboards import as_shown
from ingest.engagement.users import asking
from ingest.engagement.users.parts import app, parts
from ingest.web.paging import integer
from ingest.web.routes import in_query, limit_to
from rules.days import OTHER_REGION, REGIONS
from rules.engagement import boards
from rules.engagement.boards import GLOBAL

TOP_DEFAULT = 10
REGION = in_query("region", {"type": "string", "enum": [GLOBAL, *REGIONS, OTHER_REGION]})


@app.route("PUT /v1/users/{user_id}/alias", body=ALIAS, answer=ALIAS_VIEW)
def put_alias(user_id: str) -> dict[str, Any]:
    """Choose a name for the boards."""
    asking.commander(user_id)
    names, now = parts().names, clock.now()
    profile = parts().preferences.set_alias(user_id, app.body()["alias"], now)
    names.forget(user_id)
    shown = names.shown(user_id, profile.alias)
    return {"user_id": user_id, "alias": profile.alias, "shown_as": shown}


@app.route("GET /v1/leaderboards/{board}", [REGION, limit_to(boards.LISTED_MAX)], answer=TOP_LIST)
def get_leaderboard(board: str) -> dict[str, Any]:
    """The best."""
    caller = app.caller()
    limit, now = integer(app.query, "limit", TOP_DEFAULT, boards.LISTED_MAX), clock.now()
    top = parts().boards.top(board, app.query.get("region") or GLOBAL, limit, now)
    return as_shown(top, parts().names, caller.user_id, parts().is_erased, now)


@app.route("GET /v1/leaderboards/{board}/users/{user_id}", [REGION], answer=RANK)
def get_rank(board: str, user_id: str) -> dict[str, Any]:
    """A user's exact rank."""
    asking.caller(user_id)
    region, now = app.query.get("region") or GLOBAL, clock.now()
    found = parts().boards.rank(board, region, user_id, now)
    return found | {"alias": parts().names.shown(user_id, found["alias"])}
