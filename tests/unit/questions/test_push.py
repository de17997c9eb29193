"""What SNS says of a message is read right: botocore reads the errors, as AWS documents them."""

import json
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from botocore.stub import Stubber

from adapters.questions.push import PushReceipt, PushStatus, SnsPush, payload
from rules.questions.notifications import PushMessage

APPLICATION = "arn:aws:sns:eu-west-1:1:app/GCM/streakline"
ENDPOINT = "arn:aws:sns:eu-west-1:1:endpoint/GCM/streakline/1"
OTHER = "arn:aws:sns:eu-west-1:1:endpoint/GCM/streakline/2"
MESSAGE = PushMessage("Title", "Body", {"type": "question"}, 60)
TAKEN = {"MessageId": "1"}


@pytest.fixture
def sns() -> Any:
    return botocore.session.get_session().create_client(
        "sns", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
    )


def refuses(stub: Stubber, call: str, code: str, text: str = "", status: int = 400) -> None:
    stub.add_client_error(call, service_error_code=code, service_message=text, http_status_code=status)


@pytest.mark.parametrize(
    ("code", "text", "served", "status"),
    [
        ("EndpointDisabled", "Endpoint is disabled", 400, PushStatus.DEAD),
        ("PlatformApplicationDisabled", "", 400, PushStatus.UNSENT),
        ("AuthorizationError", "", 403, PushStatus.UNSENT),
        ("Throttling", "Rate exceeded", 400, PushStatus.UNSENT),
        ("InvalidParameter", "Invalid parameter: Message too long", 400, PushStatus.UNSENT),
        ("InternalError", "", 500, PushStatus.UNSURE),
    ],
)
def test_a_refusal_says_what_became_of_the_message(
    sns: Any, code: str, text: str, served: int, status: PushStatus
) -> None:
    with Stubber(sns) as stub:
        refuses(stub, "publish", code, text, served)
        assert SnsPush(sns, APPLICATION).send(ENDPOINT, "t", MESSAGE) == PushReceipt(status, ENDPOINT)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EndpointConnectionError(endpoint_url="x"), PushStatus.UNSENT),
        (ReadTimeoutError(endpoint_url="x"), PushStatus.UNSURE),
        (ConnectionClosedError(endpoint_url="x"), PushStatus.UNSURE),
    ],
)
def test_a_broken_line_is_sure_only_if_nothing_went_out(
    sns: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, status: PushStatus
) -> None:
    calls: list[int] = []

    def breaks(**_: Any) -> None:
        calls.append(1)
        raise error

    monkeypatch.setattr(sns, "publish", breaks, raising=False)
    assert SnsPush(sns, APPLICATION).send(ENDPOINT, "t", MESSAGE).status is status
    assert calls == [1], "a second Publish would be a second message"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("NotFound", "Endpoint does not exist"),
        ("InvalidParameter", "Invalid parameter: TargetArn Reason: No endpoint found for the target arn"),
    ],
)
def test_a_deleted_endpoint_is_made_again_once(sns: Any, code: str, text: str) -> None:
    with Stubber(sns) as stub:
        refuses(stub, "publish", code, text)
        stub.add_response("create_platform_endpoint", {"EndpointArn": OTHER})
        stub.add_response("publish", TAKEN)
        assert SnsPush(sns, APPLICATION).send(ENDPOINT, "t", MESSAGE) == PushReceipt(PushStatus.SENT, OTHER)
        stub.assert_no_pending_responses()


def test_a_token_that_is_none_is_dead(sns: Any) -> None:
    with Stubber(sns) as stub:
        refuses(stub, "create_platform_endpoint", "InvalidParameter", "Invalid parameter: Token Reason: bad")
        assert SnsPush(sns, APPLICATION).prepare("t").status is PushStatus.DEAD
        refuses(stub, "create_platform_endpoint", "NotFound", "PlatformApplication does not exist", 404)
        assert SnsPush(sns, APPLICATION).prepare("t").status is PushStatus.UNSENT


def test_an_endpoint_that_is_there_but_disabled_is_enabled_for_a_phone_that_registers(sns: Any) -> None:
    text = (
        f"Invalid parameter: Token Reason: Endpoint {OTHER} already exists with the same Token, "
        "but different attributes."
    )
    with Stubber(sns) as stub:
        refuses(stub, "create_platform_endpoint", "InvalidParameter", text)
        wanted = {"EndpointArn": OTHER, "Attributes": {"Enabled": "true", "Token": "t"}}
        stub.add_response("set_endpoint_attributes", {}, wanted)
        assert SnsPush(sns, APPLICATION).prepare("t") == PushReceipt(PushStatus.SENT, OTHER)
        stub.assert_no_pending_responses()


def test_the_payload_is_fcm_v1_as_text_in_text() -> None:
    outer = json.loads(payload(PushMessage("Title", "é" * 1000, {"question_id": "q"}, 10**9)))
    inner = json.loads(outer["GCM"])["fcmV1Message"]["message"]
    assert inner["notification"] == {"title": "Title", "body": "é" * 239 + "…"}
    assert inner["data"] == {"question_id": "q"}
    assert inner["android"] == {"ttl": "2419200s"}
    assert len(outer["GCM"].encode()) < 4096
    assert json.loads(json.loads(payload(PushMessage("", "", {}, -5)))["GCM"])["fcmV1Message"]["message"][
        "android"
    ] == {"ttl": "0s"}
