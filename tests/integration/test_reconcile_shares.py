"""The comparison in shares: it finds what one share finds, and one that fails hinders no other."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from analytics.recompute.user_shares import UserShare
from analytics.reconcile.reconcile_user import Reconciler
from rules.turns import share_of
from tests.support.corruptions import HAND
from tests.support.engine import Engine
from tests.support.ledger_corruptions import LEDGER
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
DONE = ("total", "day lost", "day made up", "longest")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    name = f"{request.node.name[5:20]}{len(request.node.name)}"  # the engine keeps the ledgers of other towns
    with lived_in(engine, tmp_path, name, 12) as made:
        made.shares = 4
        yield made


def corrupted(town: Town) -> dict[str, str]:
    """Corrupt some users; returns them by what was done. The last one's ledger alone was raised."""
    users = dict(zip(DONE, town.users, strict=False))
    for what, user in users.items():
        HAND[what](town, user)
    users["raised"] = town.users[-1]
    LEDGER["1000 points more"](town, users["raised"])
    return users


def test_all_shares_find_what_one_finds(town: Town) -> None:
    users = corrupted(town)
    in_shares = town.reconcile("shares", repair=False)
    town.shares = 1
    at_once = town.reconcile("once", repair=False)
    assert in_shares["counts"] == at_once["counts"]
    for name in ("different", "unrepaired", "differences", "disagreements", "frozen"):
        assert sorted(map(str, in_shares[name])) == sorted(map(str, at_once[name])), name
    town.shares = 4
    wet = town.reconcile("wet")
    assert (wet["frozen"], wet["counts"]["repaired"]) == ([users["raised"]], 4)
    again = town.reconcile("again", everybody=True)
    assert again["different"] == again["frozen"] == [users["raised"]]


@dataclass
class Broken(Exception):
    user: str


def test_a_share_that_fails_is_told_and_taken_up_the_next_night(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert town.reconcile("first")["different"] == []
    users = corrupted(town)
    town.now += timedelta(days=1)
    bad = users["total"]
    examine, town.gives_up = Reconciler.examine, (Broken,)

    def failing(self: Reconciler, user_id: str, *others: object) -> object:
        if user_id == bad:
            raise Broken(bad)
        return examine(self, user_id, *others)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Reconciler, "examine", failing)
        found = town.reconcile("second", everybody=True)
    given_up = share_of(bad, town.shares)
    others = {user for user in users.values() if share_of(user, town.shares) != given_up}
    assert others
    told = {*found["different"], *found["frozen"]}
    assert others <= told <= set(users.values()) - {bad}
    report = town.steps.report({"run_id": "second", "warehouse_error": {"Error": "none"}}, town.now)
    assert report["is_whole"] is False
    (failed,) = json.loads(town.objects.get("reports/second.json"))["failed_shares"]
    assert failed["share"] == given_up
    assert "Broken" in failed["reason"]
    compared = json.loads(town.objects.get("state/ledgers_compared.json"))["compared_at"]
    assert [each == min(compared) for each in compared] == [
        number == given_up for number in range(town.shares)
    ]
    town.now += timedelta(days=1)
    after = town.reconcile("third", everybody=True)
    assert told | {*after["different"], *after["frozen"]} == set(users.values())
    assert bad in after["different"]


def test_what_a_call_has_no_time_for_is_done_by_the_next(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    users = corrupted(town)
    town.shares = 1
    monkeypatch.setattr("analytics.reconcile.shares.reconcile_share.USERS_AT_ONCE", 5)
    town.has_time = lambda: False
    found = town.reconcile("slowly", everybody=True)
    progress = json.loads(town.objects.get(UserShare().key("slowly", "progress.json")))
    assert progress["after"] == sorted(town.users)[9], "the second call of three ended there"
    assert {*found["different"], *found["frozen"]} == set(users.values())
    assert found["counts"]["looked_at"] == len(town.users)
    assert found["counts"]["repaired"] == 4
