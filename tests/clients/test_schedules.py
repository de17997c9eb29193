"""Three days offline at random, in Node and in Python, against the real handlers: each event lands once, on its date."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.given import call
from tests.clients.schedule import Story, plan
from tests.integration.conftest import engine, lone_redis_url
from tests.support.api_stack import stack
from tests.support.client_processes import ClientProcess, in_node, in_python
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.gateway import token
from tests.support.node_tools import built
from tests.support.page_server import serving

__all__ = ["engine", "lone_redis_url"]
pytestmark = pytest.mark.xdist_group("clients")
SEEDS = range(effort(1, soak=100))
FORWARD_MAX = 12  # ticks of the machine tell a move from sleep by themselves


@pytest.fixture(scope="module")
def url(engine: Engine, lone_redis_url: str) -> Iterator[str]:
    with stack(engine, lone_redis_url), serving() as address:
        yield address.rstrip("/")


def stored_of(user: str) -> list[dict[str, Any]]:
    """All events of a user that the service has."""
    found, cursor = list[dict[str, Any]](), ""
    while True:
        page = call(user, "GET", f"/v1/users/{user}/events?limit=500{cursor}")
        found += page["events"]
        if not page.get("cursor"):
            return found
        cursor = f"&cursor={page['cursor']}"


@pytest.mark.parametrize("opened", [in_node, in_python], ids=lambda each: each.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_event_lands_once_on_the_date_of_its_place(
    url: str, tmp_path: Path, opened: Callable[..., ClientProcess], seed: int
) -> None:
    if opened is in_node:
        built()
    user, made = f"{opened.__name__}-{seed}", list[ClientProcess]()

    def page() -> ClientProcess:
        made.append(opened(url, token(user), user, tmp_path / "queue"))
        return made[-1]

    story = Story(page, seed)
    try:
        story.play(plan(seed, forward_max=FORWARD_MAX))
        story.check(stored_of(user))
    finally:
        for each in made:
            each.kill()
    print(f"{user}: {len(story.placed)} events, {len(story.perhaps)} killed, {len(made)} processes")
