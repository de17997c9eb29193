"""The recipes of docs/recipes, step by step, with the example that each page tells."""

from collections.abc import Mapping

from tests.recipes.scratch import Scratch, Step

GENERATED = "tests/unit/lake/test_warehouse_columns.py"
PUBLISHED = "tests/unit/lake/test_published_fields.py"


def make_models(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "analytics.generated_models"))


# ---- add-an-event-type ---------------------------------------------------------------------------
def _rule(scratch: Scratch) -> None:
    scratch.after(
        "rules/engagement/points.py",
        '        "APP_OPENED": PointsRule(points=1, daily_points_max=1),\n',
        '        "BOOK_FINISHED": PointsRule(points=30, daily_points_max=60),\n',
    )


def _rule_in_the_docs(scratch: Scratch) -> None:
    scratch.after("docs/rules.md", "| `APP_OPENED` | 1 | 1 |\n", "| `BOOK_FINISHED` | 30 | 60 |\n")


EVENT_TYPE = (
    Step("rules/engagement/points.py", _rule, "tests/unit/architecture/test_documentation.py"),
    Step("sql/models/dimensions/event_types.sql", make_models, GENERATED),
    Step("docs/rules.md", _rule_in_the_docs, "tests/unit/architecture/test_documentation.py"),
)

# ---- add-a-webhook-source ------------------------------------------------------------------------
SIGN_UP = '''"""A newsletter's sign-up form: {"signup_id", "signed_up_at", "email", "list"}."""

from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, checked
from ingest.leads.payload_fields import moment, text_id
from ingest.leads.person_fields import identities
from ingest.web.json_schema import Schema, closed_object
from rules.leads.lead_events import FORM_SUBMITTED

TEXT: Schema = {"type": "string", "minLength": 1}
SIGN_UP = closed_object(
    ["signup_id", "signed_up_at", "email"],
    {"signup_id": TEXT, "signed_up_at": TEXT, "email": TEXT, "list": TEXT},
)


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the sign-up."""
    body = checked(SIGN_UP, payload)
    return [
        DecodedEvent(
            external_event_id=text_id(body["signup_id"], "signup_id"),
            event_type=FORM_SUBMITTED,
            occurred_at=moment(body["signed_up_at"], "signed_up_at"),
            identities=identities([("email", body["email"])], context, "email"),
            object_id=body.get("list"),
            object_id_ref="list" if "list" in body else None,
        )
    ]
'''
SIGN_UP_SAMPLE = """{
  "private": ["ada@example.com"],
  "payloads": [
    {"signup_id": "s-1", "signed_up_at": "2026-03-01T10:00:00Z", "email": "ada@example.com", "list": "weekly"}
  ]
}
"""


def _decoder(scratch: Scratch) -> None:
    scratch.write("ingest/leads/sources/newsletter.py", SIGN_UP)


def _sample(scratch: Scratch) -> None:
    scratch.write("tests/webhooks/newsletter.json", SIGN_UP_SAMPLE)


SOURCE = (
    Step("ingest/leads/sources/newsletter.py", _decoder, "tests/unit/leads/test_lead_sources.py"),
    Step("tests/webhooks/newsletter.json", _sample, "tests/unit/leads/test_lead_sources.py"),
)


# ---- add-a-lead-feature --------------------------------------------------------------------------
def _feature(scratch: Scratch) -> None:
    scratch.replace(
        "rules/leads/features.py",
        """        "campaigns of 90 dates without any reaction, the last three dates' left out",
        CAMPAIGN_DAYS_MAX,
    ),
)
""",
        """        "campaigns of 90 dates without any reaction, the last three dates' left out",
        CAMPAIGN_DAYS_MAX,
    ),
    Feature("frequency_purchases_7d", A, Aggregate.COUNT, Unit.COUNT, "orders in 7 dates", 7),
)
""",
    )


def _plain_reading(scratch: Scratch) -> None:
    scratch.after(
        "tests/support/lead_histories.py",
        '        "campaign_ignored": _ignored(own, age),\n',
        '        "frequency_purchases_7d": sum(age(each) < 7 for each in orders),\n',
    )


def _feature_column(scratch: Scratch) -> None:
    scratch.after(
        "sql/ddl/lead_features.sql",
        "    campaign_ignored BIGINT ENCODE AZ64,\n",
        "    frequency_purchases_7d BIGINT ENCODE AZ64,\n",
    )


def _published_feature(scratch: Scratch) -> None:
    scratch.after(
        "tests/unit/lake/published_fields.txt",
        "lead_features.campaign_ignored integer\n",
        "lead_features.frequency_purchases_7d integer\n",
    )


def _feature_in_the_docs(scratch: Scratch) -> None:
    scratch.replace(
        "docs/rules.md", "\nfrequency_purchases_90d\n", "\nfrequency_purchases_7d\nfrequency_purchases_90d\n"
    )


FEATURE = (
    Step("rules/leads/features.py", _feature, GENERATED, "sql/ddl/lead_features.sql"),
    Step("tests/support/lead_histories.py", _plain_reading, "tests/unit/leads/test_feature_readings.py"),
    Step("sql/ddl/lead_features.sql", _feature_column, GENERATED),
    Step("make models", make_models, GENERATED),
    Step("tests/unit/lake/published_fields.txt", _published_feature, PUBLISHED),
    Step("docs/rules.md", _feature_in_the_docs, "tests/unit/platform/test_docs.py"),
)


# ---- add-a-lake-column ---------------------------------------------------------------------------
def _field(scratch: Scratch) -> None:
    scratch.after(
        "rules/lake/engagement_entities.py",
        '        Field("created_at", TIMESTAMP, "when the date was first credited", True),\n',
        '        Field("event_types_count", INTEGER, "how many event types the date has"),\n',
    )


def _writer(scratch: Scratch) -> None:
    scratch.after(
        "rules/lake/entities.py",
        '    "events": lambda row, _, corrected: event_row(row, corrected),\n',
        '    "daily_activity": lambda row, *_: row | {"event_types_count": len(row.get("points_by_type") or {})},\n',
    )


def _column(scratch: Scratch) -> None:
    scratch.after(
        "sql/ddl/daily_activity.sql",
        "    created_at TIMESTAMP NOT NULL ENCODE AZ64,\n",
        "    event_types_count BIGINT ENCODE AZ64,\n",
    )


def _facts(scratch: Scratch) -> None:
    scratch.after("sql/models/facts/daily_activity.sql", "    points_earned,\n", "    event_types_count,\n")
    scratch.after(
        "sql/models/facts/daily_activity.yml",
        "  points_earned: points earned by them\n",
        "  event_types_count: how many event types the date has\n",
    )


def _published_field(scratch: Scratch) -> None:
    scratch.after(
        "tests/unit/lake/published_fields.txt",
        "daily_activity.created_at timestamp\n",
        "daily_activity.event_types_count integer\n",
    )


COLUMN = (
    Step("rules/lake/engagement_entities.py", _field, GENERATED, "sql/ddl/daily_activity.sql"),
    Step("rules/lake/entities.py", _writer, "tests/unit/lake/test_writers.py"),
    Step("sql/ddl/daily_activity.sql", _column, GENERATED),
    Step("make models", make_models, GENERATED),
    Step("sql/models/facts/daily_activity", _facts, GENERATED),
    Step("tests/unit/lake/published_fields.txt", _published_field, PUBLISHED),
)

# ---- add-an-endpoint -----------------------------------------------------------------------------
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
        """    return answer(200, _parts().histories.activity(user_id, _query()))
""",
        """

@app.get("/v1/users/<user_id>/freezes")
def get_freezes(user_id: str) -> Response[str]:
    \"\"\"Freezes that the user holds today.\"\"\"
    _caller(user_id)
    profile = _parts().profiles.view(user_id, None, clock.now())
    return answer(200, {"user_id": user_id, "freezes_available": profile["freezes_available"]})
""",
    )


def make_template(scratch: Scratch) -> None:
    scratch.must(scratch.python("-m", "infra.assemble"))


ENDPOINT = (
    Step("ingest/engagement/engagement_routes.py", _route, ROUTED, "engagement_routes.py"),
    Step("ingest/engagement/users_api.py", _view, ROUTED),
    Step("make template", make_template, "infra.assemble --check"),
)

# ---- add-a-stream-consumer -----------------------------------------------------------------------
CONSUMER = '''"""DailyActivity stream -> log: each date on which somebody was active for the first time."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from adapters import clock, settings
from adapters.engagement.account_items import day_from
from adapters.platform.aws import client
from adapters.platform.failures import FailureQueue
from adapters.platform.items import plain
from adapters.settings.engagement import ActiveDatesSettings

logger = Logger(service="active-dates")
CONSUMER = "active-dates"


@cache
def _parts() -> FailureQueue:
    config = settings.read(ActiveDatesSettings)
    return FailureQueue(lambda: client("sqs"), config.failure_queue_url)


def read_dates(records: list[Mapping[str, Any]]) -> tuple[list[str], list[tuple[Any, str]]]:
    """Return the dates of new days, and the records that are no days, with the reason."""
    dates, poison = [], []
    for record in records:
        try:
            dates.append(day_from(plain(record["dynamodb"]["NewImage"])).activity_date.isoformat())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            poison.append((record, f"{type(error).__name__}: {error}"))
    return dates, poison


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of DailyActivity's stream."""
    dates, poison = read_dates([each for each in event["Records"] if each["eventName"] == "INSERT"])
    again = _parts().settle(event, CONSUMER, poison, clock.now())
    logger.info("batch", extra={"dates": sorted(set(dates)), "poison": len(poison)})
    return {"batchItemFailures": [{"itemIdentifier": number} for number in again]}
'''
CONSUMER_SETTINGS = '''

@dataclass(frozen=True, slots=True)
class ActiveDatesSettings:
    """processors.active_dates: it puts what is no day on failure_queue_url."""

    failure_queue_url: str
'''
CONSUMER_FRAGMENT = """  ActiveDatesFunction:
    Type: AWS::Serverless::Function
    Properties:
      Description: DailyActivity stream -> log
      Handler: processors.active_dates.handler
      Timeout: 60
      Environment:
        Variables:
          FAILURE_QUEUE_URL: !Ref ActiveDatesFailures
      Policies:
        - Version: "2012-10-17"
          Statement:
            - Effect: Allow
              Action: [sqs:SendMessage]
              Resource: !GetAtt ActiveDatesFailures.Arn
            - Effect: Allow
              Action: [dynamodb:DescribeStream, dynamodb:GetRecords, dynamodb:GetShardIterator]
              Resource: !GetAtt DailyActivity.StreamArn
            - Effect: Allow
              Action: [dynamodb:ListStreams]
              Resource: "*"
  ActiveDatesMapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref ActiveDatesFunction
      EventSourceArn: !GetAtt DailyActivity.StreamArn
      Enabled: !If [OnAws, true, false]
      StartingPosition: TRIM_HORIZON
      BatchSize: 100
      MaximumBatchingWindowInSeconds: 1
      BisectBatchOnFunctionError: true
      MaximumRetryAttempts: 10
      MaximumRecordAgeInSeconds: 86400
      FunctionResponseTypes: [ReportBatchItemFailures]
      FilterCriteria:
        Filters:
          - Pattern: '{"eventName": ["INSERT"]}'
      DestinationConfig:
        OnFailure: {Destination: !GetAtt ActiveDatesFailures.Arn}
  ActiveDatesFailures:
    Type: AWS::SQS::Queue
"""
CONSUMER_SAMPLE = """{
  "Records": [
    {
      "eventID": "1",
      "eventName": "INSERT",
      "eventSource": "aws:dynamodb",
      "dynamodb": {
        "SequenceNumber": "1",
        "NewImage": {"user_id": {"S": "ann"}, "activity_date": {"S": "2026-03-10"}}
      }
    }
  ]
}
"""
DOCUMENTED = "tests/unit/platform/test_docs.py"


def _consumer(scratch: Scratch) -> None:
    scratch.write("processors/active_dates.py", CONSUMER)


def _settings(scratch: Scratch) -> None:
    scratch.append("adapters/settings/engagement.py", CONSUMER_SETTINGS)


def _fragment(scratch: Scratch) -> None:
    scratch.replace(
        "infra/app/engagement.yaml", "  RanksFunction:\n", CONSUMER_FRAGMENT + "  RanksFunction:\n"
    )


def _sample_event(scratch: Scratch) -> None:
    scratch.write("tests/events/ActiveDatesFunction.json", CONSUMER_SAMPLE)


def _recorded(scratch: Scratch) -> None:
    scratch.after(
        "tests/infra/stateful_resources.json",
        '  "template.yaml": {\n',
        '    "ActiveDatesFailures": "AWS::SQS::Queue",\n',
    )


def _runbook(scratch: Scratch) -> None:
    scratch.after(
        "docs/runbook.md",
        "| queue | consumer, as `redrive` names it | what feeds it |\n|---|---|---|\n",
        "| `ActiveDatesFailures` | active-dates | DailyActivity's stream: dates that were not logged |\n",
    )


def _redriven(scratch: Scratch) -> None:
    scratch.after(
        "local/operate/redrive.py", "CONSUMERS = {\n", '    "active-dates": ("ActiveDates", "ActiveDates"),\n'
    )


STREAM_CONSUMER = (
    Step("processors/active_dates.py", _consumer, "tests/infra/test_functions.py", "processors.active_dates"),
    Step(
        "adapters/settings/engagement.py",
        _settings,
        "tests/unit/platform/test_settings.py",
        "adapters/settings",
    ),
    Step("infra/app/engagement.yaml", _fragment, "tests/unit/platform/test_settings.py", "infra/app"),
    Step("make template", make_template, "infra.assemble --check"),
    Step("tests/infra/stateful_resources.json", _recorded, "tests/infra/test_stateful_resources.py"),
    Step("tests/events/ActiveDatesFunction.json", _sample_event, "tests/infra/test_functions.py"),
    Step("docs/runbook.md", _runbook, DOCUMENTED),
    Step("local/operate/redrive.py", _redriven, DOCUMENTED),
)

RECIPES: Mapping[str, tuple[Step, ...]] = {
    "add-an-event-type": EVENT_TYPE,
    "add-a-webhook-source": SOURCE,
    "add-a-lead-feature": FEATURE,
    "add-a-lake-column": COLUMN,
    "add-an-endpoint": ENDPOINT,
    "add-a-stream-consumer": STREAM_CONSUMER,
}
