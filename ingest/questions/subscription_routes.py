"""The routes of subscriptions."""

from ingest.questions.subscription_schemas import STORED, SUBSCRIPTION, SUBSCRIPTION_ID
from ingest.web.routes import Route, in_path, matching

SUBSCRIPTION_PATH = in_path("subscription_id", matching(SUBSCRIPTION_ID))

SUBSCRIPTION_ROUTES = [
    Route(
        "PostSubscription",
        "QuestionsApi",
        "post",
        "/v1/subscriptions",
        "Be told of questions on a phone",
        body=SUBSCRIPTION,
        status=201,
        answer=STORED,
        may_repeat=True,
    ),
    Route(
        "DeleteSubscription",
        "QuestionsApi",
        "delete",
        "/v1/subscriptions/{subscription_id}",
        "Be told nothing more there",
        [SUBSCRIPTION_PATH],
        status=204,
    ),
]
