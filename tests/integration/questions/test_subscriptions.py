"""Registering, changing, moving and removing subscriptions, through the routes and on a real table."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.items import decode_item
from ingest.questions import questions_api
from ingest.questions.subscriptions import subscription_id
from rules.days import key_of_stamp, stamp
from rules.questions.notifications import quiet_hours
from tests.integration.test_sample_events import CONTEXT
from tests.support.engine import Engine
from tests.support.questions.subscribers import NOW, World, subscriber, world

BODY: dict[str, Any] = {
    "fcm_token": "phone",
    "audience": ["b", "a"],
    "min_interval_minutes": 240,
    "timezone": "Europe/Berlin",
    "quiet_hours": {"from": "22:00", "to": "07:00"},
    "streak_reminders": True,
    "reminders_at": "18:30",
    "language": "pt-BR",
}


class Api:
    """The routes, as the API's function has them."""

    def __init__(self, town: World) -> None:
        self.town, self.app = town, questions_api.app

    def call(self, method: str, path: str, user: str, body: Any = None, scope: str = "") -> tuple[int, Any]:
        event = {
            "version": "2.0",
            "rawPath": path,
            "headers": {},
            "body": None if body is None else json.dumps(body),
            "requestContext": {
                "http": {"method": method, "path": path},
                "stage": "$default",
                "authorizer": {"jwt": {"claims": {"sub": user, "cognito:groups": f"[{scope}]"}}},
            },
        }
        answered = self.app.resolve(event, CONTEXT)
        return answered["statusCode"], json.loads(answered["body"]) if answered.get("body") else None

    def post(self, user: str = "ada", **more: Any) -> tuple[int, Any]:
        body = BODY | more
        tags = " ".join(f"streakline/audience/{tag}" for tag in body["audience"])
        return self.call("POST", "/v1/subscriptions", user, body, tags)

    def delete(self, own: str, user: str = "ada", scope: str = "") -> int:
        return self.call("DELETE", f"/v1/subscriptions/{own}", user, scope=scope)[0]


@pytest.fixture
def api(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    with world(engine) as town:
        for name, value in (engine.environment() | {"SUBSCRIPTIONS_TABLE": town.subscriptions}).items():
            monkeypatch.setenv(name, value)
        client.cache_clear()
        questions_api._parts.cache_clear()
        yield Api(town)
        questions_api._parts.cache_clear()


def places(town: World) -> dict[str, str | None]:
    """What the table holds: the part of the key after the subscription, and the index partition."""
    return {
        key.partition("#")[2] if not key.startswith("token#") else "token": (
            each.get("active", {}).get("S") or ""
        ).partition("~")[0]
        or None
        for key, each in town.scan().items()
    }


def test_a_phone_is_registered_changed_and_removed(api: Api) -> None:
    status, made = api.post()
    assert status == 201
    assert made == {
        "subscription_id": subscription_id("ada", "phone"),
        "audience": ["a", "b"],
        **{name: BODY[name] for name in ("min_interval_minutes", "timezone", "quiet_hours")},
        "streak_reminders": True,
        "reminders_at": "18:30",
        "language": "pt-BR",
        "created_at": stamp(NOW),
        "updated_at": stamp(NOW),
    }
    assert places(api.town) == {
        "": "00240#+",
        "tag=a": "00240#=a",
        "tag=b": "00240#=b",
        "reminder": places(api.town)["reminder"],
        "token": None,
    }
    status, changed = api.post(
        audience=["c"], min_interval_minutes=0, streak_reminders=False, quiet_hours=None
    )
    assert (status, changed["subscription_id"]) == (200, made["subscription_id"])
    assert changed["created_at"] < changed["updated_at"]
    assert places(api.town) == {"": "00000#+", "tag=c": "00000#=c", "token": None}
    assert api.delete(made["subscription_id"]) == 204
    assert api.town.scan() == {}
    assert api.delete(made["subscription_id"]) == 404


def test_what_a_body_leaves_out_has_its_default(api: Api) -> None:
    status, made = api.call("POST", "/v1/subscriptions", "ada", {"fcm_token": "phone"})
    assert (status, made["audience"], made["min_interval_minutes"]) == (201, [], 60)
    assert (made["timezone"], made["quiet_hours"], made["streak_reminders"]) == ("UTC", None, False)
    assert (made["reminders_at"], made["language"]) == (None, None)


def test_an_audience_is_among_the_tags_of_the_token(api: Api) -> None:
    body, tags = {"fcm_token": "phone"}, "streakline/audience/b streakline/audience/a"

    def post(scope: str, **more: Any) -> tuple[int, Any]:
        return api.call("POST", "/v1/subscriptions", "ada", body | more, scope)

    status, told = post(tags, audience=["a", "c"])
    assert (status, told["error"]["code"]) == (403, "forbidden")
    assert "audience c" in told["error"]["message"]
    assert api.town.scan() == {}
    assert post(tags)[1]["audience"] == ["a", "b"]
    assert post(tags, audience=["b"])[1]["audience"] == ["b"]
    assert post("", audience=[])[1]["audience"] == []
    assert post("streakline/admin", audience=["c"])[1]["audience"] == ["c"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"fcm_token": "a b"}, "fcm_token"),
        ({"audience": ["a", "a"]}, "audience"),
        ({"audience": ["a#b"]}, "audience.0"),
        ({"audience": [f"t{n}" for n in range(11)]}, "audience"),
        ({"min_interval_minutes": -1}, "min_interval_minutes"),
        ({"min_interval_minutes": 43201}, "min_interval_minutes must be smaller than or equal to 43200"),
        ({"min_interval_minutes": 4.5}, "min_interval_minutes"),
        ({"timezone": "Europe/Atlantis"}, "timezone"),
        ({"timezone": "+19:00"}, "timezone"),
        ({"quiet_hours": {"from": "22:00"}}, "quiet_hours"),
        ({"quiet_hours": {"from": "22:00", "to": "24:00"}}, "quiet_hours.to"),
        ({"quiet_hours": {"from": "22:00", "to": "22:00"}}, "quiet_hours"),
        ({"streak_reminders": "yes"}, "streak_reminders"),
        ({"reminders_at": "8pm"}, "reminders_at"),
        ({"reminders_at": "23:45"}, "reminders_at"),
        ({"language": "pt_BR"}, "language"),
        ({"owner": "eve"}, "owner"),
    ],
)
def test_what_cannot_be_is_refused_by_name(api: Api, more: dict[str, Any], field: str) -> None:
    status, told = api.post(**more)
    assert (status, told["error"]["code"]) == (422, "invalid_field")
    assert field in told["error"]["message"]
    assert api.town.scan() == {}


def test_somebody_elses_subscription_is_not_there(api: Api) -> None:
    own = api.post()[1]["subscription_id"]
    assert api.delete(own, "eve") == 404
    for bad in (f"{own}%23tag=a", "token", own.upper(), own[:-1]):
        assert api.delete(bad, "eve", "streakline/admin") == 404
    assert len(api.town.scan()) == 5
    assert api.delete(own, "root", "streakline/admin") == 204


def test_a_phone_has_one_user_at_a_time(api: Api) -> None:
    own = api.post("ada")[1]["subscription_id"]
    api.town.dynamodb.update_item(
        TableName=api.town.subscriptions,
        Key={"subscription_id": {"S": own}},
        UpdateExpression="SET endpoint_arn = :arn, last_notified_at = :last",
        ExpressionAttributeValues={":arn": {"S": "arn"}, ":last": {"S": key_of_stamp(stamp(NOW))}},
    )
    status, made = api.post("bob", audience=[], streak_reminders=False)
    assert status == 201
    assert places(api.town) == {"": "00240#*", "token": None}
    stored = decode_item(api.town.scan()[made["subscription_id"]])
    assert (stored["owner"], stored["endpoint_arn"]) == ("bob", "arn"), "the endpoint is the phone's"
    assert stored["last_notified_at"] < key_of_stamp(stamp(NOW)), "the history is not"
    assert api.delete(own, "ada") == 404, "a late sign-out does not silence the new one"


def test_the_endpoint_goes_with_the_subscription(api: Api, engine: Engine) -> None:
    sns = engine.client("sns")
    app = sns.create_platform_application(Name="subs", Platform="GCM", Attributes={})[
        "PlatformApplicationArn"
    ]
    arn = sns.create_platform_endpoint(PlatformApplicationArn=app, Token="phone")["EndpointArn"]
    own = api.post()[1]["subscription_id"]
    api.town.dynamodb.update_item(
        TableName=api.town.subscriptions,
        Key={"subscription_id": {"S": own}},
        UpdateExpression="SET endpoint_arn = :arn",
        ExpressionAttributeValues={":arn": {"S": arn}},
    )
    assert api.delete(own) == 204
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.get_endpoint_attributes(EndpointArn=arn)


def test_a_dead_phone_that_registers_again_is_new(api: Api) -> None:
    own = api.post()[1]["subscription_id"]
    found = api.town.store().get(own)
    assert found and api.town.store().deactivate(found, NOW)
    assert not api.town.store().deactivate(found, NOW)
    assert places(api.town) == {"": None}
    assert api.post()[0] == 201
    again = api.town.store().get(own)
    assert again and again.is_active and again.fcm_token == "phone" and not again.endpoint_arn
    assert not api.town.store().deactivate(found, NOW), "news of its death are old"


def test_many_at_once_leave_one_owner_and_nothing_behind(api: Api) -> None:
    store = api.town.store()
    wanted = [
        subscriber(n % 3, fcm_token="phone", tags=tuple("abc"[: n % 4]), streak_reminders=n % 2 == 0)
        for n in range(12)
    ]
    # A subscription that is gone and comes again has another stamp. One that is written again has its former stamp
    # and a microsecond, so the clocks' stamps are further apart.
    moments = [NOW + timedelta(seconds=n) for n in range(len(wanted))]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(store.register, wanted, moments))
    items = {key: decode_item(each) for key, each in api.town.scan().items()}
    (own,) = [key for key in items if "#" not in key]
    (holder,) = [each["of"] for key, each in items.items() if key.startswith("token#")]
    assert holder == own
    expected = {own, *(f"{own}#tag={tag}" for tag in items[own]["audience"])}
    expected |= {f"{own}#reminder"} if items[own]["streak_reminders"] else set()
    assert {key for key in items if not key.startswith("token#")} == expected


def test_a_change_during_an_announcement_does_not_forget_it(api: Api) -> None:
    own = api.post(audience=[], min_interval_minutes=60, quiet_hours=None)[1]["subscription_id"]
    store, notifier = api.town.store(), api.town.notifier()
    read = store.get(own)
    assert read

    def change(each: Any) -> None:
        store.register(subscriber(0, subscription_id=own, owner="ada", fcm_token="phone", tags=each), NOW)

    with ThreadPoolExecutor(2) as both:
        both.submit(api.town.announce, api.town.ask(), notifier)
        list(both.map(change, [("a",), ("b",), ()]))
    found = store.get(own)
    assert found and (found.last_notified_at == stamp(NOW)) == (api.town.phones.got["phone"] == 1)
    assert quiet_hours("22:00", "07:00") != found.quiet_hours
    assert found.updated_at > stamp(NOW - timedelta(seconds=1))
