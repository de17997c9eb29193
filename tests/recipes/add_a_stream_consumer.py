"""docs/recipes/add-a-stream-consumer.md, step by step, with its example."""

from tests.recipes.common_steps import make_template
from tests.recipes.scratch import Scratch, Step

CONSUMER = '''"""RewardsLedger stream -> log: each date that an event has earned something on."""

from dataclasses import dataclass
from datetime import datetime

from adapters.logs import Logger
from adapters.platform.items import decode_item
from processors.batches import BatchResult, ConsumerSettings, Record, stream_consumer

logger = Logger(service="active-dates")


@dataclass(frozen=True)
class ActiveDatesSettings(ConsumerSettings):
    """It needs nothing but its failure queue."""


def date_of(record: Record) -> str | None:
    """Return the date (YYYY-MM-DD) of an entry of an event; None for another entry."""
    if record["eventName"] != "INSERT":
        return None
    entry = decode_item(record["dynamodb"]["NewImage"])
    return str(entry["activity_date"]) if entry["kind"] == "EARN" else None


@stream_consumer("active-dates", logger)
def handler(records: list[Record], _now: datetime) -> BatchResult:
    """Lambda entry: a batch of RewardsLedger's stream."""
    result = BatchResult()
    dates = {date for _, date in result.read(records, date_of)}
    logger.info("dates", extra={"dates": sorted(dates)})
    return result
'''
CONSUMER_FRAGMENT = """  ActiveDatesFunction:
    Type: AWS::Serverless::Function
    Properties:
      Description: RewardsLedger stream -> log
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
              Resource: !GetAtt RewardsLedger.StreamArn
            - Effect: Allow
              Action: [dynamodb:ListStreams]
              Resource: "*"
  ActiveDatesMapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref ActiveDatesFunction
      EventSourceArn: !GetAtt RewardsLedger.StreamArn
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
        "Keys": {"account_id": {"S": "ann"}, "created_at": {"S": "2026-03-10T08:00:00.000001Z"}},
        "NewImage": {"kind": {"S": "EARN"}, "activity_date": {"S": "2026-03-10"}}
      }
    }
  ]
}
"""
DOCUMENTED = "tests/unit/platform/test_docs.py"


def _consumer(scratch: Scratch) -> None:
    scratch.write("processors/active_dates.py", CONSUMER)


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
        "| queue | consumer, as `queue redrive` names it | what feeds it |\n|---|---|---|\n",
        "| `ActiveDatesFailures` | active-dates | RewardsLedger's stream: dates that were not logged |\n",
    )


def _redriven(scratch: Scratch) -> None:
    scratch.after(
        "local/operate/redrive.py",
        "CONSUMERS = {\n",
        '    "active-dates": Consumer("ActiveDates", "ActiveDates", Source.TABLE),\n',
    )


def _inventory(scratch: Scratch) -> None:
    listed = '            *("EventsStreamFailures", '
    added = '            "ActiveDatesFailures",\n'
    scratch.replace("rules/privacy/inventory.py", listed, added + listed)


def _calls(scratch: Scratch) -> None:
    scratch.replace(
        "tests/infra/calls.json",
        '  "AnswersFunction": [\n',
        '  "ActiveDatesFunction": [\n    "sqs:SendMessage FAILURE_QUEUE_URL"\n  ],\n  "AnswersFunction": [\n',
    )


STREAM_CONSUMER = (
    Step("processors/active_dates.py", _consumer, "tests/infra/test_functions.py", "processors.active_dates"),
    Step("infra/app/engagement.yaml", _fragment, "tests/unit/platform/test_settings.py", "infra/app"),
    Step("make template", make_template, "infra.assemble --check"),
    Step("tests/infra/stateful_resources.json", _recorded, "tests/infra/test_stateful_resources.py"),
    Step("rules/privacy/inventory.py", _inventory, "tests/infra/test_inventory.py", "ActiveDatesFailures"),
    Step("tests/events/ActiveDatesFunction.json", _sample_event, "tests/infra/test_functions.py"),
    Step("tests/infra/calls.json", _calls, "tests/infra/test_calls.py", "no test saw a call"),
    Step("docs/runbook.md", _runbook, DOCUMENTED),
    Step("local/operate/redrive.py", _redriven, DOCUMENTED),
)
