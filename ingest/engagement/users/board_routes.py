"""Routes of leaderboards, and of the names on them."""

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from adapters import clock
from ingest.engagement.engagement_schemas import ALIAS
from ingest.engagement.leaderboards import as_shown
from ingest.engagement.users import asking
from ingest.engagement.users.parts import parts
from ingest.web.caller import caller_of
from ingest.web.http import answer
from ingest.web.paging import integer
from rules.engagement import standings
from rules.engagement.boards import GLOBAL

TOP_DEFAULT = 10

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]  # Powertools leaves it untyped


@router.put("/v1/users/<user_id>/alias")
def put_alias(user_id: str) -> Response[str]:
    """Choose a name for the boards."""
    asking.commander(user_id)
    names, now = parts().names, clock.now()
    profile = parts().preferences.set_alias(user_id, asking.body(ALIAS)["alias"], now)
    names.forget(user_id)
    shown = names.shown(user_id, profile.alias)
    return answer(200, {"user_id": user_id, "alias": profile.alias, "shown_as": shown})


@router.get("/v1/leaderboards/<board>")
def get_leaderboard(board: str) -> Response[str]:
    """The best users of a region, or of all regions."""
    caller = caller_of(router.current_event.raw_event)
    limit, now = integer(asking.query(), "limit", TOP_DEFAULT, standings.LISTED_MAX), clock.now()
    top = parts().boards.top(board, asking.query().get("region") or GLOBAL, limit, now)
    return answer(200, as_shown(top, parts().names, caller.user_id, parts().is_erased, now))


@router.get("/v1/leaderboards/<board>/users/<user_id>")
def get_rank(board: str, user_id: str) -> Response[str]:
    """A user's exact rank."""
    asking.caller(user_id)
    region, now = asking.query().get("region") or GLOBAL, clock.now()
    found = parts().boards.rank(board, region, user_id, now)
    return answer(200, found | {"alias": parts().names.shown(user_id, found["alias"])})
