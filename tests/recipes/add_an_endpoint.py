"""docs/recipes/add-an-endpoint.md, step by step, with its example."""

from tests.recipes.common_steps import make_clients, make_template
from tests.recipes.scratch import Scratch, Step


def _handler(scratch: Scratch) -> None:
    scratch.replace(
        "ingest/engagement/users_api.py",
        "from ingest.web.json_schema import FLAG, one_of, text\n",
        "from ingest.web.json_schema import FLAG, TEXT, closed_object, one_of, text, whole\n",
    )
    scratch.after(
        "ingest/engagement/users_api.py",
        """    return page
""",
        '''

FREEZES_VIEW = closed_object({"user_id": TEXT, "freezes_available": whole()})


@app.route("GET /v1/users/{user_id}/freezes", answer=FREEZES_VIEW)
def get_freezes(user_id: str) -> dict[str, Any]:
    """Freezes that the user holds today."""
    user_services.require_reach(user_id)
    profile = services().profiles.view(user_id, None, clock.now())
    return {"user_id": user_id, "freezes_available": profile["freezes_available"]}
''',
    )


ENDPOINT = (
    Step("ingest/engagement/users_api.py", _handler, ""),
    Step("make template", make_template, "infra.assemble --check"),
    Step("make clients", make_clients, "tests/unit/clients/test_drift.py"),
)
