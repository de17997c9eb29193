"""docs/recipes/add-an-endpoint.md, step by step, with its example."""

from tests.recipes.common_steps import make_clients, make_template
from tests.recipes.scratch import Scratch, Step

ROUTED = "tests/infra/test_routes.py"


def _route(scratch: Scratch) -> None:
    scratch.replace(
        "ingest/engagement/engagement_routes.py",
        """    Route(
        "PostPause",
""",
        """    Route("GetFreezes", USERS_API, "get", f"{OF_USER}/freezes", "Freezes that the user holds", [USER]),
    Route(
        "PostPause",
""",
    )


def _view(scratch: Scratch) -> None:
    scratch.after(
        "ingest/engagement/users_api.py",
        """    return answer(200, found)
""",
        """

@app.get("/v1/users/<user_id>/freezes")
def get_freezes(user_id: str) -> Response[str]:
    \"\"\"Freezes that the user holds today.\"\"\"
    asking.caller(user_id)
    profile = _parts().profiles.view(user_id, None, clock.now())
    return answer(200, {"user_id": user_id, "freezes_available": profile["freezes_available"]})
""",
    )


ENDPOINT = (
    Step("ingest/engagement/engagement_routes.py", _route, ROUTED, "engagement_routes.py"),
    Step("ingest/engagement/users_api.py", _view, ROUTED),
    Step("make template", make_template, "infra.assemble --check"),
    Step("make clients", make_clients, "tests/unit/clients/test_drift.py"),
)
