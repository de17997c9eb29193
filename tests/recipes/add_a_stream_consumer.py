"""docs/recipes/add-a-stream-consumer.md, step by step, with its example."""

from tests.recipes.common_steps import make_template
from tests.recipes.scratch import Scratch, Step

CONSUMER = '''"""DailyActivity stream -> log: each date on which somebody was active for the first time."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.engagement.account_items import day_from
from adapters.logs import Logger
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
      Enabled: !If [Consumes, true, false]
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


def _inventory(scratch: Scratch) -> None:
    listed = '            *("EventsStreamFailures", '
    scratch.replace("rules/privacy/inventory.py", listed, f'            "ActiveDatesFailures",\n{listed}')


def _calls(scratch: Scratch) -> None:
    scratch.replace(
        "tests/infra/calls.json",
        '  "AnswersFunction": [\n',
        '  "ActiveDatesFunction": [\n    "sqs:SendMessage FAILURE_QUEUE_URL"\n  ],\n  "AnswersFunction": [\n',
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
    Step("rules/privacy/inventory.py", _inventory, "tests/infra/test_inventory.py", "ActiveDatesFailures"),
    Step("tests/events/ActiveDatesFunction.json", _sample_event, "tests/infra/test_functions.py"),
    Step("tests/infra/calls.json", _calls, "tests/infra/test_calls.py", "no test saw a call"),
    Step("docs/runbook.md", _runbook, DOCUMENTED),
    Step("local/operate/redrive.py", _redriven, DOCUMENTED),
)
