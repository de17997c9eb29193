"""Several at once through the deployed doors: one key, one balance, one account, one first event of a day.

Each request in flight is a process of its own here, up to some of a function, which takes half a second of CPU to start;
tests/integration/test_at_once.py does the same with 64 threads.
"""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3

from local.api import Api
from local.stack import Stack
from tests.e2e.conftest import event
from tests.e2e.test_survival import workers
from tests.support.effort import effort

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

MANY = effort(4, soak=16)
WAITING = effort(24, soak=500)  # a user may wait 60 times a minute, and is answered 202 at once beyond that
PROCESSES_MAX = 8  # of a function: local/cloud/ministack_server.py
Settled = Callable[..., None]
Post = Callable[..., list[dict[str, Any]]]


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def test_posts_of_one_key_are_one_event(stack: Stack, me: Api, user: str, settled: Settled) -> None:
    body = {"events": [event(user, "same")]}
    answers = at_once([lambda: me.call("POST", "/v1/events", body)] * MANY)
    statuses = Counter(answer["results"][0]["status"] for _, answer in answers)
    # A client asks again if an answer is late, and then hears that its event was a duplicate.
    assert statuses in ({"accepted": 1, "duplicate": MANY - 1}, {"duplicate": MANY})
    assert len({answer["results"][0]["event_id"] for _, answer in answers}) == 1
    settled(user)
    assert me.get(f"/v1/users/{user}")["total_bestie_points"] == 10
    # They were served by many processes, which share what is unpacked of the function.
    folders = [Path(f"/proc/{pid}/cwd").resolve().name for pid in workers(stack, "EventsApi")]
    assert len(folders) > 1
    assert {each.partition("-")[0] for each in folders} == {"unpacked"}


def test_first_events_of_a_day_make_one_day(me: Api, user: str, settled: Settled) -> None:
    bodies = [{"events": [event(user, f"k{number}-{each}") for each in range(4)]} for number in range(MANY)]
    answers = at_once([lambda body=body: me.call("POST", "/v1/events", body) for body in bodies])  # type: ignore[misc]
    assert all(answer["accepted"] == 4 for _, answer in answers)
    settled(user)
    profile = me.get(f"/v1/users/{user}")
    assert (profile["current_streak"], profile["active_days"]) == (1, 1)
    assert me.get(f"/v1/users/{user}/activity")["activity"][0]["events_count"] == 4 * MANY
    assert profile["balance"] == 100  # the daily cap


def test_a_redemption_is_reversed_once(me: Api, admin: Api, user: str, post: Post, settled: Settled) -> None:
    post(event(user, "k"))
    settled(user)
    redemptions = f"/v1/users/{user}/redemptions"
    body = {"points": 10, "reward_id": "mug", "idempotency_key": "r"}
    status, entry = admin.call("POST", redemptions, body)
    assert (status, entry["balance"], entry["points"]) == (201, 0, -10)
    status, again = admin.call("POST", redemptions, body)
    assert (status, again["entry_id"], again["duplicate"]) == (201, entry["entry_id"], True)
    assert admin.call("POST", redemptions, {**body, "points": 5})[1]["error"]["code"] == "conflict"
    path = f"{redemptions}/{entry['entry_id']}/reversal"
    answers = at_once([lambda: admin.call("POST", path, {})] * MANY)
    assert Counter(status for status, _ in answers) == {201: 1, 409: MANY - 1}
    assert {a["error"]["code"] for status, a in answers if status == 409} == {"already_reversed"}
    settled(user)
    ledger = me.get(f"/v1/users/{user}/ledger")["entries"]
    assert [(each["kind"], each["balance"]) for each in ledger] == [
        ("REVERSE", 10),
        ("REDEEM", 0),
        ("EARN", 10),
        ("OPEN", 0),
    ]


def test_more_wait_than_there_are_processes_and_others_are_answered(
    stack: Stack, me: Api, user: str, post: Post, settled: Settled
) -> None:
    pool = urllib3.PoolManager(maxsize=WAITING, retries=False)
    headers = {"authorization": f"Bearer {me.token}", "content-type": "application/json", "prefer": "wait=2"}

    def wait(number: int) -> int:
        body = json.dumps({"events": [event(user, f"k{number}")]})
        answer = pool.request("POST", f"{stack.api_url}/v1/events", body=body, headers=headers, timeout=180)
        return int(answer.status)

    with ThreadPoolExecutor(WAITING) as crowd:
        waiting = [crowd.submit(wait, number) for number in range(WAITING)]
        (told,) = post(event(f"{user}-other", "k"))
        assert told["status"] == "accepted"
        assert me.get(f"/v1/users/{user}")["user_id"] == user
        statuses = Counter(each.result() for each in waiting)
    assert set(statuses) <= {200, 202}, statuses
    assert statuses[200]
    assert len(workers(stack, "EventsApi")) <= PROCESSES_MAX
    settled(user, f"{user}-other")
