"""The routes of amnesties, as the API describes them."""

from ingest.engagement.amnesty.amnesty_schemas import AMNESTIES, AMNESTY, APPLICATION, APPLIED, DECLARATION
from ingest.web.routes import Route, in_path, matching

API = "UsersApi"
PLACE = "/v1/amnesties"
NUMBER = in_path("number", matching("^[0-9]{1,6}$"))

AMNESTY_ROUTES = [
    Route("GetAmnesties", API, "get", PLACE, "All amnesties (admins)", answer=AMNESTIES),
    Route(
        "PostAmnesty",
        API,
        "post",
        PLACE,
        "Declare that an outage counts against nobody (admins)",
        body=DECLARATION,
        status=201,
        answer=AMNESTY,
        description="The dates that it touched are no misses. Apply it to all who have lost something.",
    ),
    Route(
        "PostAmnestyApplication",
        API,
        "post",
        f"{PLACE}/{{number}}/apply",
        "Apply an amnesty, or its revocation, to some users (admins)",
        [NUMBER],
        body=APPLICATION,
        answer=APPLIED,
    ),
    Route(
        "PostAmnestyRevocation",
        API,
        "post",
        f"{PLACE}/{{number}}/revoke",
        "Revoke an amnesty (admins)",
        [NUMBER],
        answer=AMNESTY,
    ),
]
