"""`streakline queue redrive --stack-name NAME`: SQS and DynamoDB by moto, functions from here."""

import base64
import io
import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local import cli
from local import stack as stack_module
from local.operate.redrive import CONSUMERS
from tests.support.aws_stack import described, known
from tests.support.template import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
KEYS = {"user_id": "HASH", "event_id": "RANGE"}
STORED: Any = {"user_id": {"S": "USER_ID"}, "event_id": {"S": "EVENT_ID"}, "points_awarded": {"N": "10"}}
PLACE = {
    "streamArn": "arn:aws:dynamodb:eu-west-1:1:table/BP_EVENTS_TABLE/stream/0",
    "shardId": "shard",
    "startSequenceNumber": "10",
    "endSequenceNumber": "20",
}


def refusal(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


class Functions:
    """Functions that note what they are asked. answers: by function; an exception is raised."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.log = ""

    def invoke(self, FunctionName: str, Payload: bytes, LogType: str) -> Any:  # noqa: N803
        self.asked.append((FunctionName, json.loads(Payload)))
        answer = self.answers.get(FunctionName, {"batchItemFailures": []})
        if isinstance(answer, Exception):
            raise answer
        more = {"FunctionError": "Unhandled"} if "errorMessage" in answer else {}
        log = base64.b64encode(self.log.encode()).decode()
        return {"Payload": io.BytesIO(json.dumps(answer).encode()), "LogResult": log, **more}


class Streams:
    """A table's stream; `gone` once its records are trimmed."""

    def __init__(self) -> None:
        self.gone = False
        self.parts: list[list[int]] = []

    def get_shard_iterator(self, **_: Any) -> Any:
        if self.gone:
            raise refusal("TrimmedDataAccessException", "GetShardIterator")
        return {"ShardIterator": "0"}

    def get_records(self, ShardIterator: str, Limit: int) -> Any:  # noqa: N803
        place = int(ShardIterator)
        numbers = self.parts[place] if place < len(self.parts) else []
        records = [
            {"eventID": str(n), "eventName": "INSERT", "dynamodb": {"SequenceNumber": str(n)}}
            for n in numbers
        ]
        return {"Records": records, "NextShardIterator": str(place + 1)}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """One session for all tests of this module: each would read the services' models anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3, "DEFAULT_SESSION", boto3.Session("test", "test"))
        yield


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws(config={"core": {"reset_boto3_session": False}}):
        sqs: Any = boto3.client("sqs", region_name="eu-west-1")
        dynamodb: Any = boto3.client("dynamodb", region_name="eu-west-1")
        dynamodb.create_table(
            TableName="BP_EVENTS_TABLE",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in KEYS.items()],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in KEYS],
            BillingMode="PAY_PER_REQUEST",
        )
        dynamodb.put_item(TableName="BP_EVENTS_TABLE", Item=STORED)
        outputs = {f"{each.function}FunctionName": each.function for each in CONSUMERS.values()}
        outputs["ApiUrl"] = "https://api"
        outputs["PayloadBucketName"] = "payloads"
        s3: Any = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="payloads")
        for each in CONSUMERS.values():
            outputs[each.queue_output] = sqs.create_queue(QueueName=each.queue)["QueueUrl"]
        functions, streams, real = Functions(), Streams(), stack_module.fresh_client
        ours = {"lambda": functions, "dynamodbstreams": streams}
        monkeypatch.setattr(
            stack_module,
            "fresh_client",
            lambda url, region, service, attempts=4: (
                ours.get(service) or real(url, region, service, attempts)
            ),
        )
        monkeypatch.setattr("local.cloud.streams._unparsing", lambda *_: streams)
        monkeypatch.setattr("local.operate.redrive.AWS_WAIT_SECONDS", 0)
        found = described(outputs)
        with known(monkeypatch, "live", found):
            yield SimpleNamespace(
                outputs=outputs, found=found, functions=functions, streams=streams, sqs=sqs, s3=s3
            )


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command. What it prints must tell of leftovers exactly if it ends with an error."""

    def run(*arguments: str) -> Any:
        monkeypatch.setattr("sys.argv", ["streakline", "queue", *arguments, "--stack-name", "live", "--json"])
        ended = None
        try:
            cli.main()
        except SystemExit as error:
            ended = error
        told = json.loads(capsys.readouterr().out)
        assert bool(ended) is (arguments[0] == "redrive" and bool(told["left"]))
        assert ended is None or "left" in str(ended.code)
        return told

    return run


def refused(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr("sys.argv", ["streakline", "queue", *arguments, "--stack-name", "live", "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return str(ended.value.code)


def keep(aws: Any, queue: str, body: Any) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    aws.sqs.send_message(QueueUrl=aws.outputs[f"{queue}FailuresUrl"], MessageBody=text)


def by_hand() -> str:
    """The message of the runbook, word by word."""
    (message,) = re.findall(r"```json\n(.*?)```", RUNBOOK, re.DOTALL)
    return str(message)


def given_up(queue: str, aws: Any) -> None:
    keep(aws, queue, {"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": PLACE})


def test_a_message_made_by_hand_is_listed_and_sent(aws: Any, queue: Any) -> None:
    keep(aws, "Engagement", by_hand())
    (left,) = queue("list")
    assert (left["consumer"], left["reason"]) == ("engagement", "by hand")
    assert aws.functions.asked == []
    assert queue("redrive") == {"redriven": 1, "left": []}
    ((function, payload),) = aws.functions.asked
    assert (function, payload["streakline_redrive"]) == ("Engagement", True)
    assert payload["Records"][0]["dynamodb"]["NewImage"] == STORED
    assert queue("list") == []


def test_what_fails_again_is_kept_with_the_reason_and_stops_nothing(aws: Any, queue: Any) -> None:
    keep(aws, "Engagement", by_hand())
    keep(aws, "Feature", '{"lead": 1}')
    keep(aws, "Memory", '{"lead": 2}')
    failed = [{"itemIdentifier": "1", "reason": "idempotency_key is missing"}]
    aws.functions.answers = {
        "Engagement": {"batchItemFailures": failed},
        "Memory": {"errorMessage": "out of memory"},
    }
    answer = queue("redrive")
    assert answer["redriven"] == 1
    told = {each["consumer"]: (each["reason"], each["again"]) for each in answer["left"]}
    assert told["engagement"] == ("by hand", "idempotency_key is missing")
    assert told["memory"][1] == "Unhandled: out of memory"
    assert {each["consumer"] for each in queue("list")} == {"engagement", "memory"}


def test_a_transient_failure_s_reason_is_in_the_log(aws: Any, queue: Any) -> None:
    keep(aws, "Engagement", by_hand())
    aws.functions.answers = {"Engagement": {"batchItemFailures": [{"itemIdentifier": "1"}]}}
    trouble = {"level": "ERROR", "message": "to come again", "exception": "Traceback\nUnprocessed: busy"}
    aws.functions.log = f"START\n{json.dumps(trouble)}\n" + '{"level": "INFO", "message": "batch"}\nEND\n'
    assert queue("redrive")["left"][0]["again"] == "to come again: Unprocessed: busy"
    aws.functions.log = ""
    assert "log says why" in queue("redrive")["left"][0]["again"]


def test_a_batch_that_its_stream_still_has_is_read_and_sent(aws: Any, queue: Any) -> None:
    given_up("Engagement", aws)
    aws.streams.parts = [[10, 11], [], [20, 21]]  # a part in the middle of a shard may be empty
    assert queue("redrive") == {"redriven": 1, "left": []}
    ((_, payload),) = aws.functions.asked
    assert [each["dynamodb"]["SequenceNumber"] for each in payload["Records"]] == ["10", "11", "20"]


def test_a_batch_that_is_trimmed_is_kept_and_the_others_go_on(aws: Any, queue: Any) -> None:
    given_up("Engagement", aws)
    keep(aws, "Feature", '{"lead": 1}')
    aws.streams.gone = True
    answer = queue("redrive")
    assert answer["redriven"] == 1
    (left,) = answer["left"]
    assert "no longer in the stream" in left["again"]
    assert left["reason"] == "RetryAttemptsExhausted"


def test_a_function_that_may_not_be_called_and_a_message_that_is_none(aws: Any, queue: Any) -> None:
    keep(aws, "Feature", '{"lead": 1}')
    keep(aws, "Publisher", {"reason": "odd", "record": {"no": "keys"}})
    aws.functions.answers = {"Features": refusal("AccessDeniedException", "Invoke")}
    told = {each["consumer"]: each["again"] for each in queue("redrive")["left"]}
    assert told["features"] == "these credentials may not do Invoke: no"
    assert "cannot be read" in told["publisher"]


def test_a_stack_without_the_kinesis_door_has_no_queue_of_it(aws: Any, queue: Any) -> None:
    door = {"EventsStreamFunctionName", "EventsStreamFailuresUrl"}
    aws.found["Outputs"] = [each for each in aws.found["Outputs"] if each["OutputKey"] not in door]
    keep(aws, "Feature", '{"lead": 1}')
    assert queue("redrive") == {"redriven": 1, "left": []}


def test_messages_that_show_again_while_they_are_sent_are_sent_once(
    aws: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "local.operate.redrive.HIDDEN_SECONDS", 0
    )  # as if all took longer than they are hidden
    for number in range(3):
        keep(aws, "Feature", json.dumps({"lead": number}))
    aws.functions.answers = {"Features": {"errorMessage": "out of memory"}}
    assert len(queue("redrive")["left"]) == 3
    assert len(aws.functions.asked) == 3
    aws.functions.answers = {}
    assert queue("redrive") == {"redriven": 3, "left": []}
    assert queue("list") == []


# ---- one queue, and one message


@pytest.mark.parametrize("name", ["FeatureFailures", "FEATURE-failures", "features"])
def test_one_queue_alone_by_its_name_or_its_consumer_s(aws: Any, queue: Any, name: str) -> None:
    keep(aws, "Feature", '{"lead": 1}')
    keep(aws, "Memory", '{"lead": 2}')
    assert [each["queue"] for each in queue("list", "--queue", name)] == ["FeatureFailures"]
    assert queue("redrive", "--queue", name) == {"redriven": 1, "left": []}
    assert [function for function, _ in aws.functions.asked] == ["Features"]
    assert [each["queue"] for each in queue("list")] == ["MemoryFailures"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Engagemnt", "did you mean EngagementFailures?"),
        ("q", "there are AnnouncementFailures, "),
        ("ShipmentFailures", "a partner's messages"),
    ],
)
def test_a_queue_that_is_none_of_ours_says_which_there_are(
    aws: Any, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    assert text in refused(monkeypatch, "list", "--queue", name)


def test_what_is_given_up_leaves_its_queue_and_is_kept_with_who_when_and_why(aws: Any, queue: Any) -> None:
    for number in range(12):
        keep(aws, "Feature", json.dumps({"lead": number}))
    given_up("Engagement", aws)
    odd = "no JSON: \U0001f600 {"
    keep(aws, "LeadIngestion", odd)
    for each in queue("list"):
        if each["consumer"] != "features":
            told = queue("discard", each["id"], "--reason", f"why {each['queue']}")
            assert told["record"] == each["record"]
    kept = {each["queue"]: each for each in queue("discarded")}
    assert set(kept) == {"EngagementFailures", "LeadIngestionFailures"}
    assert kept["EngagementFailures"]["discard_reason"] == "why EngagementFailures"
    assert kept["EngagementFailures"]["reason"] == "RetryAttemptsExhausted"
    assert json.loads(kept["EngagementFailures"]["message"])["DDBStreamBatchInfo"] == PLACE
    assert kept["LeadIngestionFailures"]["message"] == odd
    assert kept["EngagementFailures"]["discarded_by"].startswith("arn:aws:")
    assert len(queue("list")) == 12, "nobody else's message is touched, or hidden"
    assert [each["queue"] for each in queue("discarded", "--queue", "leads")] == ["LeadIngestionFailures"]


def test_what_was_given_up_can_be_taken_back(aws: Any, queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(aws, "Feature", '{"lead": 1}')
    (left,) = queue("list")
    queue("discard", left["id"], "--reason", "a test")
    assert queue("redrive") == {"redriven": 0, "left": []}
    elsewhere = ("take-back", left["id"], "--queue", "memory")
    assert "of this queue was given up" in refused(monkeypatch, *elsewhere)
    queue("take-back", left["id"], "--queue", "FeatureFailures")
    assert queue("discarded") == []
    assert queue("redrive") == {"redriven": 1, "left": []}
    assert aws.functions.asked[0][1]["Records"][0]["body"] == '{"lead": 1}'


def test_a_queue_without_a_name_is_not_every_queue(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(aws, "Feature", '{"lead": 1}')
    discard = ("discard", "x", "--reason", "a test")
    for does in (("redrive",), ("list",), ("discarded",), discard, ("take-back", "x")):
        for name in ("", " ", "-"):
            assert "there is no failure queue" in refused(monkeypatch, *does, "--queue", name)
    assert not aws.functions.asked


def test_nothing_is_given_up_without_a_reason_or_by_another_id(
    aws: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(aws, "Feature", '{"lead": 1}')
    (left,) = queue("list")
    assert "--reason" in refused(monkeypatch, "discard", left["id"], "--reason", " ")
    assert "no message nope" in refused(monkeypatch, "discard", "nope", "--reason", "a test")
    elsewhere = ("discard", left["id"], "--reason", "a test", "--queue", "memory")
    assert "in this queue" in refused(monkeypatch, *elsewhere)
    assert "was given up" in refused(monkeypatch, "take-back", left["id"])
    assert queue("list") == [left]


def test_a_message_stays_where_it_is_if_it_cannot_be_kept(
    aws: Any, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(aws, "Feature", '{"lead": 1}')
    (left,) = queue("list")
    aws.found["Outputs"] = [
        {**each, "OutputValue": "gone"} if each["OutputKey"] == "PayloadBucketName" else each
        for each in aws.found["Outputs"]
    ]
    assert "NoSuchBucket" in refused(monkeypatch, "discard", left["id"], "--reason", "a test")
    assert queue("list") == [left]
