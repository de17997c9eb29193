"""Erases a user of a company, notes what results have of the user by then, and looks for names that are left."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ingest.privacy_api
import processors.erasure
from tests.oracle.board_reading import name_of
from tests.oracle.league_reading import Place, week_of
from tests.oracle.machines import CONTEXT
from tests.support.board_tables import Secrets

if TYPE_CHECKING:
    from tests.oracle.company_rounds import CompanyRound

NAMING = ("UserStreaks", "DailyActivity", "Boards", "Friends", "RewardsLedger", "BPEvents")
DOORS = (ingest.privacy_api, processors.erasure)


@dataclass(frozen=True)
class Erased:
    """What was so of a user when the erasure came. Results that are made afterwards do not have the user.

    entries: the ledger, oldest first. open_cohort: the user's cohort, if it had no result; or None. results: the
    names of periods whose final result was there.
    """

    entries: list[Any]
    open_cohort: Place | None
    results: frozenset[str]


def erase(round_: "CompanyRound", user: str, entries: list[Any]) -> Erased:
    """Erase a user, at once: all processes are new afterwards, as they are by an erasure's second sweep."""
    machines, real = round_.machines, round_.machines.stream.real
    found = Erased(entries, _open_cohort(round_, user), _results(round_))
    clients = {"dynamodb": real, "secretsmanager": Secrets(), "s3": machines.engine.client("s3")}
    for module in DOORS:
        machines.patch.setattr(module._parts, "client", lambda name, **_: clients[name])
        module._parts.cache_clear()
    machines.user = user
    status, told = machines.call(ingest.privacy_api.handler, "DELETE", f"/v1/users/{user}", None, "user")
    assert status == 202, told
    processors.erasure.handler({}, CONTEXT)
    for item in real.scan(TableName="Erasures")["Items"]:
        if item["part"]["S"] == "open":  # no night comes, for which it would wait
            real.delete_item(TableName="Erasures", Key={name: item[name] for name in ("part", "place")})
    for module in DOORS:
        module._parts.cache_clear()
    machines.new_process()
    return found


def _open_cohort(round_: "CompanyRound", user: str) -> Place | None:
    """The newest cohort that a user has joined, as long as it has no result."""
    joined = [place for _, place in round_.lives[user].places]
    if not joined:
        return None
    monday, division, cohort = joined[-1]
    board = f"league#{name_of(week_of(monday))}#{division}"
    key = {"board": {"S": board}, "part": {"S": f"{cohort:07}"}}
    item = round_.machines.stream.real.get_item(TableName="Boards", Key=key).get("Item", {})
    return None if "result" in item else joined[-1]


def _results(round_: "CompanyRound") -> frozenset[str]:
    items = round_.machines.stream.real.scan(TableName="Boards")["Items"]
    return frozenset(item["part"]["S"] for item in items if item["board"]["S"] == "finals")


def left_of(round_: "CompanyRound", *users: str) -> Iterator[str]:
    """Yield what tables still have of users who were erased."""
    for table in NAMING if users else ():
        for page in round_.machines.stream.real.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                packed = [zlib.decompress(each["B"]) for each in item.values() if "B" in each]
                text = f"{item} {packed}"
                yield from (f"{table} still has {user}: {text}" for user in users if user in text)
