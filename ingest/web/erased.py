"""Who was erased is answered 410: one check before each route of people, whatever the route does (rule 10).

A route concerns whom its path names; one that names nobody, whoever asks. Only those who may reach somebody
learn that they were erased: to all others the route answers as if they were there, which is 403.
"""

from collections.abc import Callable
from typing import Any, Protocol

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from ingest.web.api import Api
from ingest.web.caller import ApiError, caller_of
from rules.privacy.tombstones import user_subject

# Parts of paths that are a user's id.
PEOPLE = ("user_id", "agent_id")
NO_ROUTE = "not_found_handler"  # Powertools' own, where no route fits
GONE = "was erased; an admin may lift that for somebody who comes anew"


class Tombstones(Protocol):
    """What knows who was erased: adapters.privacy.tombstones, or what looks anew each time."""

    def stands(self, subject: str) -> bool:
        """Whether a tombstone stands over a subject (rules.privacy.tombstones)."""


def refuse_erased(app: Api, tombstones: Callable[[], Tombstones], *but: str) -> None:
    """Let a function answer 410 wherever somebody who was erased asks, or is asked about.

    tombstones: returns those of this process, once a request has come. but: names of the functions whose
    routes are for the erased.
    """

    def check(app: APIGatewayHttpResolver, route: Callable[[APIGatewayHttpResolver], Any]) -> Response[Any]:
        if app.context["_route"].func.__name__ not in (NO_ROUTE, *but):
            caller, parts = caller_of(app.current_event.raw_event), app.context["_route_args"]
            named = [parts[each] for each in PEOPLE if each in parts] or [caller.user_id]
            if any(tombstones().stands(user_subject(each)) for each in named if caller.may_reach(each)):
                raise ApiError(410, "erased", f"the user {GONE}")
        answered: Response[Any] = route(app)
        return answered

    app.use([check])
