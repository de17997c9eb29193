"""Three days offline at random, in two tabs of Chromium, against the deployed stack: each event lands once, on its date."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.api import Api
from local.cloud.tokens import token
from local.stack import Stack
from tests.clients.schedule import Story, plan
from tests.support.chromium_tabs import Device, app_server, page_of
from tests.support.effort import effort, only_soak

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
SEEDS = range(effort(1, soak=60))
ONLINE = {"elapsed": 0, "jump": 0, "slept": 0, "net": "on", "full": False}
OFFLINE = {**ONLINE, "net": "off"}
PATIENCE_MILLISECONDS = 60_000


@pytest.fixture
def device(stack: Stack, user: str, browser: Any) -> Iterator[Device]:
    made = Device(browser, stack.api_url, token(stack, user), user)
    yield made
    made.context.close()


def names_of(api: Api, user: str) -> list[str]:
    return sorted(each["properties"]["name"] for each in stored_of(api, user))


def stored_of(api: Api, user: str) -> list[dict[str, Any]]:
    """All events of a user that the service has."""
    found: list[dict[str, Any]] = api.get(f"/v1/users/{user}/events?limit=500")["events"]
    return found


@only_soak(
    "test_each_event_lands_once_on_the_date_of_its_place (tests/clients/test_schedules.py), the same story in Node and in"
    " Python, and tests/e2e/test_clients_in_chromium.py for a full storage, a page that ends and a profile in Chromium"
)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_event_lands_once_on_the_date_of_its_place(
    me: Api, user: str, device: Device, seed: int
) -> None:
    story = Story(device.tab, seed)
    story.play(plan(seed, forward_max=3, sleeps_max=1, has_spare=True))
    story.check(stored_of(me, user))
    counts = f"{len(story.placed)} events, {len(story.perhaps)} while killed, {device.killed} killed"
    print(f"seed {seed}: {counts}, {story.unkept} not kept")


def test_a_full_storage_loses_nothing_even_with_its_page(me: Api, user: str, device: Device) -> None:
    device.fill(True)
    tab = device.tab()
    assert tab.tell({"world": OFFLINE, "do": "track", "name": "one"})["kept"] is True
    tab.tell_and_kill({})
    device.fill(False)
    tab = device.tab()
    shown = tab.tell({"world": ONLINE, "do": "flush"})
    assert (shown["waiting"], shown["unkept"]) == (0, [])
    assert names_of(me, user) == ["one"]
    assert tab.page.evaluate("() => Object.keys(localStorage)") == ["world"], (
        "nothing is left in the spare storage"
    )


def test_where_nothing_can_be_stored_the_app_is_told(me: Api, user: str, device: Device) -> None:
    device.fill(True)
    tab = device.tab()
    tab.tell({"world": {**OFFLINE, "full": "all"}})
    told = tab.tell({"do": "track", "name": "one"})
    assert told["kept"] is False
    device.fill(False)
    shown = tab.tell({"world": ONLINE, "do": "flush"})
    assert (shown["waiting"], shown["unkept"]) == (0, [told["key"]])
    assert names_of(me, user) == ["one"]


def test_what_waits_goes_out_at_the_end_of_the_page(me: Api, user: str, device: Device) -> None:
    tab = device.tab()
    tab.tell({"world": OFFLINE, "do": "track", "name": "one"})
    tab.tell({"do": "flush"})
    page = tab.page
    page.evaluate("(world) => localStorage.setItem('world', JSON.stringify(world))", ONLINE)
    page.evaluate("() => void told({do: 'track', name: 'two'})")
    page.close(run_before_unload=True)
    until(lambda: names_of(me, user) == ["one", "two"])
    again = device.tab()
    assert again.tell({"world": ONLINE, "do": "flush"})["waiting"] == 0
    assert names_of(me, user) == ["one", "two"], "the next page learns from the keys that they have landed"


def test_the_profile_is_an_estimate_first_and_then_the_services(me: Api, user: str, device: Device) -> None:
    tab = device.tab()
    shown = tab.tell({"world": OFFLINE, "do": "track", "name": "one"}) and tab.tell({})
    assert (shown["current_streak"], shown["is_estimate"], shown["waiting"]) == (1, True, 1)
    assert tab.tell({"world": ONLINE, "do": "flush"})["waiting"] == 0
    tab.page.wait_for_function("() => last() && !last().is_estimate", timeout=PATIENCE_MILLISECONDS)
    corrected = tab.page.evaluate("() => last()")
    profile = me.get(f"/v1/users/{user}")
    assert {name: corrected[name] for name in profile} == profile
    assert (profile["current_streak"], profile["balance"], corrected["waiting"]) == (1, 10, 0)


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "::1"][: effort(1, soak=3)],
)
def test_an_app_on_another_port_of_this_machine_may_call_the_laptop(
    me: Api, stack: Stack, user: str, browser: Any, host: str
) -> None:
    text = page_of(stack.api_url, token(stack, user), user)
    context = browser.new_context()
    with app_server(host, text) as address:
        page = context.new_page()
        page.goto(address)
        page.wait_for_function("() => globalThis.told !== undefined")
        tell = "(command) => told(command)"
        assert page.evaluate(tell, {"world": ONLINE, "do": "track", "name": "one"})["kept"] is True
        assert page.evaluate(tell, {"do": "flush"})["waiting"] == 0
        assert names_of(me, user) == ["one"]
        assert page.evaluate(tell, {"do": "profile"})["profile"]["user_id"] == user
    context.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_MILLISECONDS / 1000
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
