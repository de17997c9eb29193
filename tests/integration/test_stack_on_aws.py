"""A stack on AWS by its name: found, or told in a sentence why not."""

from typing import Any

import botocore.exceptions
import pytest
from botocore.exceptions import ClientError

from local import cli
from local.aws_errors import explain_error
from local.stack import find
from tests.support.aws_stack import described, known

OUTPUTS = {"ApiUrl": "https://api/", "BPEventsTable": "t", "EventsApiFunctionName": "f"}


def said(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr("sys.argv", ["streakline", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, str), "a sentence, and status 1"
    return ended.value.code


def test_what_commands_need_is_in_outputs_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    with known(monkeypatch, "live", described(OUTPUTS, Currency="EUR")):
        found = find("live", "us-east-2")
    assert (found.api_url, found.region, found.name) == ("https://api", "us-east-2", "live")
    assert (found.tables, found.parameters) == ({"BPEvents": "t"}, {"Currency": "EUR"})
    assert not found.is_laptop


def test_aws_region_counts_and_an_argument_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    with known(monkeypatch, "live", described(OUTPUTS)):
        assert find("live").region == "ap-south-1"
        assert find("live", "eu-north-1").region == "eu-north-1"


def test_no_such_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    with known(monkeypatch, "live", described(OUTPUTS)):
        text = said(monkeypatch, "status", "--stack-name", "dead", "--region", "eu-west-1")
    assert "there is no stack dead in eu-west-1" in text


@pytest.mark.parametrize("found", [described({}), {"StackStatus": "ROLLBACK_COMPLETE"}])
def test_a_stack_that_is_not_deployed_or_not_ours(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    with known(monkeypatch, "live", found):
        assert "has no output ApiUrl" in said(monkeypatch, "queue", "redrive", "--stack-name", "live")


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "told so"}}, "DescribeStacks")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (botocore.exceptions.NoCredentialsError(), "there are no credentials"),
        (botocore.exceptions.NoRegionError(), "say --region"),
        (botocore.exceptions.ProfileNotFound(profile="nope"), "nope"),
        (botocore.exceptions.UnauthorizedSSOTokenError(), "aws sso login"),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="https://x"), "is the region's name right"),
        (refusal("ExpiredToken"), "does not accept these credentials (ExpiredToken)"),
        (refusal("AccessDenied"), "may not do DescribeStacks: told so"),
        (refusal("Throttling"), "DescribeStacks: Throttling: told so"),
    ],
)
def test_errors_are_sentences(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str) -> None:
    def raised(*_: Any) -> None:
        raise error

    assert text in explain_error(error)
    monkeypatch.setattr("local.stack.find", raised)
    assert text in said(monkeypatch, "status", "--stack-name", "live")
