"""Routes of friends. The handler of their function is that of users_api.py."""

from typing import Any

from adapters import clock
from ingest.engagement import user_services
from ingest.engagement.friends import AGREED, FRIENDS, FRIENDS_BOARD, STREAKS, TIE, check_other, since_of_body
from ingest.engagement.user_services import app, services
from ingest.web.caller import Caller
from ingest.web.json_schema import text
from ingest.web.routes import in_query
from rules.book.goal_rules import GOAL_NAME

BOARD = in_query("board", text("streaks (the default), points, or a board of the book", pattern=GOAL_NAME))


def require_friendship(user_id: str, friend_id: str) -> Caller:
    """Return the caller, who changes what two users have with each other: the user, a server or an admin.

    Raises 400 for ids that cannot be of two users, 403, and 429.
    """
    caller = user_services.any_caller(user_id)
    if not caller.is_server:
        caller.check(user_id)
    app.check_path("friend_id", friend_id)
    check_other(user_id, friend_id)
    return user_services.count_command(caller, user_id)


@app.route("GET /v1/users/{user_id}/friends", answer=FRIENDS)
def get_friends(user_id: str) -> dict[str, Any]:
    """Friends, the streak that the user has with each, and requests.

    Of friends there are dates, and no times, events or points.
    """
    user_services.count_history(user_services.require_reach(user_id))
    return services().friends.view(user_id, clock.now())


@app.route("GET /v1/users/{user_id}/friends/board", [BOARD], answer=FRIENDS_BOARD)
def get_friends_board(user_id: str) -> dict[str, Any]:
    """The user among the friends.

    By streaks, by points ever earned, or by the points of a board of the book, in its period of today.
    """
    user_services.count_history(user_services.require_reach(user_id))
    return services().friends.board(user_id, app.query.get("board") or STREAKS, clock.now())


@app.route("PUT /v1/users/{user_id}/friends/{friend_id}", body=AGREED, answer=TIE)
def put_friend(user_id: str, friend_id: str) -> dict[str, Any]:
    """Ask another user to be a friend, or answer such a request.

    The pair begins when both have done so. A server begins it at once: it says that both have agreed.
    """
    caller = require_friendship(user_id, friend_id)
    vouched = caller.is_server and caller.user_id != user_id
    now = clock.now()
    since = since_of_body(app.body(), now, vouched=vouched)
    return services().friends.befriend(user_id, friend_id, now, vouched=vouched, since=since)


@app.route("DELETE /v1/users/{user_id}/friends/{friend_id}", answer=TIE)
def delete_friend(user_id: str, friend_id: str) -> dict[str, Any]:
    """End a pair, decline a request, or take one back."""
    require_friendship(user_id, friend_id)
    return services().friends.part(user_id, friend_id, clock.now())


@app.route("PUT /v1/users/{user_id}/blocked/{friend_id}", answer=TIE)
def put_block(user_id: str, friend_id: str) -> dict[str, Any]:
    """Block another user.

    A pair ends, and requests of the other user are not shown any more. The other user does not learn of it.
    """
    user_services.require_reach(user_id)
    require_friendship(user_id, friend_id)
    return services().friends.block(user_id, friend_id, clock.now())


@app.route("DELETE /v1/users/{user_id}/blocked/{friend_id}", answer=TIE)
def delete_block(user_id: str, friend_id: str) -> dict[str, Any]:
    """Let another user ask again."""
    user_services.require_reach(user_id)
    require_friendship(user_id, friend_id)
    return services().friends.unblock(user_id, friend_id, clock.now())
