"""Routes of amnesties, all of them for admins."""

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from adapters import clock
from adapters.engagement.amnesty.amnesty_store import DeclaredMeanwhile
from ingest.engagement.amnesty.acts import amnesty_view, applied_view
from ingest.engagement.amnesty.amnesty_schemas import APPLICATION, DECLARATION
from ingest.engagement.users import asking
from ingest.engagement.users.parts import parts
from ingest.web.caller import ApiError, caller_of
from ingest.web.erased import GONE
from ingest.web.http import answer

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]  # Powertools leaves it untyped


def _admin() -> str:
    """Return who asks; raises 403 for anybody but an admin."""
    caller = caller_of(router.current_event.raw_event)
    caller.check_admin()
    return caller.user_id


@router.get("/v1/amnesties")
def get_amnesties() -> Response[str]:
    """All amnesties, by number."""
    _admin()
    return answer(200, {"amnesties": list(map(amnesty_view, parts().amnesties.store.look().known))})


@router.post("/v1/amnesties")
def post_amnesty() -> Response[str]:
    """Declare one."""
    author = _admin()
    try:
        said = parts().amnesties.declare(asking.body(DECLARATION), author, clock.now())
    except DeclaredMeanwhile:
        reason = "somebody else has declared one at the same time: look at it, then declare again"
        raise ApiError(409, "conflict", reason) from None
    return answer(201, amnesty_view(said))


@router.post("/v1/amnesties/<number>/apply")
def post_application(number: str) -> Response[str]:
    """Apply one to some users."""
    _admin()
    body = asking.body(APPLICATION)
    acts = parts().amnesties
    users = [each for each in body["users"] if not parts().is_erased(each)]
    if not users:
        raise ApiError(410, "erased", f"each of these users {GONE}")
    told = acts.apply(number, users, clock.now(), is_dry=body.get("dry_run", False))
    return answer(200, applied_view(told))


@router.post("/v1/amnesties/<number>/revoke")
def post_revocation(number: str) -> Response[str]:
    """Revoke one."""
    _admin()
    return answer(200, amnesty_view(parts().amnesties.revoke(number, clock.now())))
