"""Items are changed by chance, in any attribute: each is named, and no balance rises above the lake's sum."""

import random
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from adapters.platform.items import Item, decode_item
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
# What a run does not name. What no ledger has: the number of a profile's version, and when it was written. A
# carrier's copies of entries that are stored by now. And that a profile lists no checkpoints.
UNHEEDED = {
    "UserStreaks": {
        "user_id",
        "version",
        "streak_updated_at",
        "backfilled",
        "streak_checkpoints",
    },
    "DailyActivity": {"user_id", "activity_date"},
    "RewardsLedger": {"account_id", "created_at", "carried"},
}


def changed(chance: random.Random, held: dict[str, Any], others: list[Item], name: str) -> Any:
    """Return another value for an attribute: near, of another type, another item's, or None for nothing."""
    ((kind, value),) = held.items()
    ways: list[Any] = [lambda: None, lambda: {"S": "x"}, lambda: {"L": []}, lambda: {"N": "-3"}]
    ways.append(lambda: chance.choice(others).get(name))
    if kind == "N":
        ways += [lambda: {"N": str(int(value) + chance.choice((-1, 1, 1000)))}] * 4
    if kind == "S":
        ways += [lambda: {"S": value[:-1] + chance.choice("0123456789")}] * 3
    if kind == "BOOL":
        ways += [lambda: {"BOOL": not value}] * 3
    return chance.choice(ways)()


def corrupt(town: Town, chance: random.Random, user: str) -> str:
    """Change one attribute of one of a user's items; returns what was done."""
    stored: dict[str, list[Item]] = {
        "UserStreaks": [town.profile(user)],
        "DailyActivity": list(town.projections.days(user).values()),
        "RewardsLedger": town.entries(user),
    }
    while True:
        table = chance.choice(sorted(stored))
        found = chance.choice(stored[table])
        name = chance.choice(sorted(set(found) - UNHEEDED[table]))
        value = changed(chance, found[name], stored[table], name)
        if value == found[name]:
            continue
        new = {key: held for key, held in found.items() if key != name} | ({name: value} if value else {})
        try:
            town.put(table, new)
        except town.real.exceptions.ClientError:
            continue  # an index refuses another type
        break
    return f"{table} {decode_item(found).get('created_at', decode_item(found).get('activity_date', ''))} {name}: {found[name]} -> {value}"


def lake_sums(town: Town) -> dict[str, int]:
    """Return each account's sum of points by the curated files alone."""
    sums: dict[str, dict[Any, int]] = defaultdict(dict)
    for stored in town.objects.list("curated/ledger/"):
        for row in pq.read_table(BytesIO(town.objects.get(stored.key))).to_pylist():
            sums[row["account_id"]][row["created_at"]] = row["points"]
    return {user: sum(points.values()) for user, points in sums.items()}


@pytest.mark.parametrize("seed", range(effort(1, soak=60)))
def test_whatever_is_changed_is_named_and_nothing_is_paid_for_it(
    engine: Engine, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"corrupt {seed}")
    with lived_in(engine, tmp_path, f"chance-{seed}", effort(16, soak=40)) as town:
        clean = town.reconcile("before")
        assert (clean["different"], clean["frozen"], clean["disagreements"]) == ([], [], [])
        before, sums = town.tables(), lake_sums(town)
        done = {user: corrupt(town, chance, user) for user in town.users if len(town.entries(user)) > 1}
        found = town.reconcile("night", everybody=True)
        named = {*found["different"], *found["frozen"], *(name for name, _ in found["disagreements"])}
        assert {user: what for user, what in done.items() if user not in named} == {}
        assert named <= done.keys()
        frozen = set(found["frozen"])
        after = town.tables()
        assert {done[user] for user in done.keys() - frozen if after[user] != before[user]} == set()
        for user, what in done.items():
            balance = decode_item(town.profile(user)).get("balance")
            if user not in frozen:
                assert balance == sums[user], what
        again = town.reconcile("again", everybody=True)
        assert set(again["different"]) <= frozen
        assert set(again["frozen"]) == frozen
