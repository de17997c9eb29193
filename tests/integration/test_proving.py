"""The night's root, proofs against it, and copies of the ledger that somebody has changed (rule 19)."""

# Long: three copies of the ledger, and what may be done to each.

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.engagement.account_items import entry_item
from adapters.platform.objects import FolderObjects
from analytics.lake import layout
from analytics.proving.copies import lake_copies
from analytics.proving.heads import HEADS, Heads
from analytics.proving.roots import LATEST, root_key
from analytics.reconcile.run_report import gather, markdown
from analytics.steps.forget_function import ForgetSteps
from local.prove import check_proof
from local.prove.auditing import LAKE, WAREHOUSE, Auditor
from local.prove.proving import proof
from rules.engagement import ledger_doubts
from rules.engagement.proving import chains, sealing
from rules.engagement.proving.chains import chain_of
from rules.engagement.proving.sealing import sealed
from rules.engagement.proving.tree import bucket_of
from rules.lake.residue import Names
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.forgetting import MemoryJobs, having
from tests.support.ledger_corruptions import LEDGER
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
MANIPULATIONS = effort(24, soak=3_400)  # in each of the three copies; tests/unit/proving tries 200 in memory
ALL = "9"  # every entry is old enough to be everywhere


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, request.node.name[5:24], 6) as made:
        yield made


def roots(town: Town) -> FolderObjects:
    return FolderObjects(town.folder / "roots")


def auditor(town: Town) -> Auditor:
    return Auditor(town.objects, town.accounts.ledger, town.warehouse, ALL)


def proven(town: Town, user: str, root: str, entry: str = "") -> list[str]:
    made = proof(town.objects, town.accounts.ledger, user, entry)
    path = town.folder / "proof.json"
    path.write_text(json.dumps(made))
    return check_proof.check(path, root)


def test_a_night_publishes_a_root_against_which_each_entry_is_proven(town: Town) -> None:
    assert town.reconcile("dry", repair=False)["root"] is None
    told = town.reconcile("night")["root"]
    assert told == json.loads(roots(town).get(LATEST)) == json.loads(roots(town).get(root_key("night")))
    assert told["accounts"] == town.size
    for user in town.users:
        for entry in town.entries(user):
            lines = proven(town, user, told["root"], entry["created_at"]["S"])
            assert f"account_id: {user}" in lines
            assert f"seq: {entry['seq']['N']}" in lines
    with pytest.raises(ValueError, match="leads to the root"):
        proven(town, town.users[0], "00" * 32)
    with pytest.raises(RuntimeError, match="no root has"):
        proof(town.objects, town.accounts.ledger, "nobody")


def test_the_next_night_follows_the_days_change_and_names_the_root_before(town: Town) -> None:
    first = town.reconcile("first")["root"]
    user = town.users[0]
    before = Heads.read(town.objects)
    town.apply([town.event(user, 300, 1)])
    town.curate()
    assert proven(town, user, first["root"]), "what came since has no root yet, and all before still has"
    second = town.reconcile("second")["root"]
    after = Heads.read(town.objects)
    assert (second["before"], second["accounts"]) == (first["root"], first["accounts"])
    assert sum(one != other for one, other in zip(before.roots, after.roots, strict=True)) == 1
    assert "points: " in "".join(proven(town, user, second["root"]))
    left = [each.key for each in town.objects.list("state/heads/")]
    assert len(left) == sum(each > 0 for each in after.accounts)
    assert HEADS not in left


def test_a_night_that_died_after_the_root_was_published_publishes_the_same_again(town: Town) -> None:
    told = town.reconcile("night")["root"]
    town.steps.collect({"run_id": "night", "repair": True}, town.now)
    assert json.loads(roots(town).get(LATEST)) == told


def test_a_ledger_rewritten_with_all_its_hashes_contradicts_the_root(town: Town) -> None:
    """Whoever knows the salt can make a chain that follows. The root of the night before knows better."""
    town.reconcile("first")
    user = town.users[0]
    entries, _ = town.accounts.ledger.after(user, "0")
    bare = [replace(each, chain=b"", begins=b"", folded=()) for each in entries]
    bare[1] = replace(bare[1], draft=replace(bare[1].draft, event_id=f"{bare[1].draft.event_id}x"))
    for each in sealed(bare, None, entries[0].begins):
        town.put("RewardsLedger", entry_item(each))
    told = town.reconcile("second", everybody=True)
    assert told["frozen"] == [user]
    assert f"entry {entries[-1].seq}, or one before it, is not the one of the last root" in str(
        told["disagreements"]
    )


def test_each_way_to_corrupt_a_ledger_is_found_against_the_root(town: Town) -> None:
    town.reconcile("first")
    wrong = dict(zip(sorted(LEDGER)[: town.size - 1], town.users, strict=False))
    for what, user in wrong.items():
        LEDGER[what](town, user)
    kept = Heads.read(town.objects)
    told = town.reconcile("second", everybody=True)
    assert {*told["frozen"]} >= {*wrong.values()}
    assert Heads.read(town.objects).roots == kept.roots, "who contradicts the root keeps the leaf of before"


def test_a_fault_in_the_code_of_hashes_freezes_nobody_and_publishes_no_root(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_doubts, "MANY_MIN", 3)
    kept = town.reconcile("first")["root"]
    forged = town.users[0]
    LEDGER["1000 points more"](town, forged)
    with monkeypatch.context() as faulty:
        faulty.setattr(chains, "hidden_bytes", lambda entry: sealing.hidden_bytes(entry)[::-1])
        told = town.reconcile("second", everybody=True)
    assert told["frozen"] == [forged], "lake and ledger disagree about it, whatever its chain says"
    assert told["spared"] == {"unproven": town.size - 1}
    assert told["root"] is None
    assert json.loads(roots(town).get(LATEST)) == kept
    report = markdown(gather(town.objects, "second", town.now))
    assert (
        f"**{town.size - 1} accounts are unproven, so many that the code that makes or checks hashes"
        in report
    )
    told = town.reconcile("third", everybody=True)
    assert (told["frozen"], told["spared"]) == ([forged], {}), "the code is right again"
    assert told["root"]["before"] == kept["root"]


def manipulated_files(town: Town, luck: random.Random) -> tuple[str, int, Any]:
    """Change one row of the lake's ledger; return whose it was, its seq, and how to undo that."""
    stored = luck.choice(layout.curated_files(town.objects, "ledger"))
    path = town.folder / "lake" / stored.key
    before = path.read_bytes()
    table = pq.read_table(path)
    rows = table.to_pylist()
    place = luck.randrange(len(rows))
    row = rows[place]
    user, seq = row["account_id"], row["seq"]
    what = luck.choice(["flip", "drop", "add", "swap"])
    if what == "flip":
        name = luck.choice(["points", "balance", "event_id", "kind", "activity_date", "created_at"])
        row[name] = {"points": 7777, "balance": 7777}.get(name, row[name])
        if name in ("event_id", "kind"):
            row[name] = "OTHER"
        if name == "activity_date":
            row[name] = row[name].replace(year=2001) if row[name] else None
            row["reason"] = "changed"
        if name == "created_at":
            row[name] = row[name].replace(microsecond=(row[name].microsecond + 1) % 10**6)
    elif what == "drop":
        del rows[place]
    elif what == "add":
        rows.insert(place, {**row, "points": 5555, "event_id": "one more"})
    else:
        row["seq"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return user, seq, lambda: path.write_bytes(before)


def test_lake_files_that_were_changed_are_named_by_account_and_place(town: Town) -> None:
    town.reconcile("night")
    town.curate()
    town.load()
    luck = random.Random(3)
    assert list(auditor(town).audit(town.users)) == []
    for _ in range(MANIPULATIONS):
        user, seq, undo = manipulated_files(town, luck)
        found = list(auditor(town).audit([user]))
        undo()
        assert seq in {each.fault.seq for each in found if (each.account, each.copy) == (user, LAKE)}
        assert {each.copy for each in found} == {LAKE}


def test_the_chain_of_an_erased_person_still_leads_to_the_root(town: Town) -> None:
    town.reconcile("night")
    town.curate()
    user, other = town.users[:2]
    chain = chain_of(user, lake_copies(town.objects, [user])[user])
    seals = tuple(f"{each['seq']['N']} {each['seal']['S']}" for each in town.entries(user) if "seal" in each)
    jobs, at = MemoryJobs(), town.now + timedelta(days=3)
    jobs.add("e", town.now, user=user, seals=seals)
    town.objects.put("runs/forget/tasks.json", b"[]")
    event = {"run_id": "forget", "tasks_key": "runs/forget/tasks.json"}
    ForgetSteps(town.objects, cast("Any", jobs), None, timedelta(0)).forget(event, at)
    name = Names("salt of e").of(user)
    left = lake_copies(town.objects, [user, name])
    assert set(left) == {name}
    residue = chain_of(name, left[name])
    assert chain
    assert residue
    heads = Heads.read(town.objects)
    assert heads.leaves(town.objects, bucket_of(user))[residue.name].digest == residue.leaf == chain.leaf
    assert having(town.folder / "lake", [seals[0].split(" ")[1]]) == set(), "the salt is gone"
    assert list(Auditor(town.objects, town.accounts.ledger, None, ALL).audit([other])) == []
    place = len(left[name]) // 2
    raised = replace(left[name][place], shown=left[name][place].shown + b"1")
    other_chain = chain_of(name, [*left[name][:place], raised, *left[name][place + 1 :]])
    assert other_chain
    assert other_chain.leaf != residue.leaf


FLIPS = ("points = points + 1", "balance = 0", "event_id = 'other'", "kind = 'ADJUST'", "seq = seq + 1")


def test_warehouse_rows_that_were_changed_are_named_by_account_and_place(town: Town) -> None:
    town.reconcile("night")
    town.curate()
    town.load()
    luck = random.Random(4)
    assert list(auditor(town).audit(town.users)) == []
    for number in range(MANIPULATIONS):
        user = luck.choice(town.users)
        seq = int(luck.choice(town.entries(user)[1:])["seq"]["N"])
        where = f"WHERE account_id = '{user}' AND seq = {seq}"
        town.warehouse.run([f"CREATE OR REPLACE TABLE kept AS FROM lake.ledger WHERE account_id = '{user}'"])
        what = luck.choice([*FLIPS, "drop", "add"])
        if what == "drop":
            town.warehouse.run([f"DELETE FROM lake.ledger {where}"])
        elif what == "add":
            columns = "account_id, created_at, seq, kind, points, balance, load_number"
            made = (
                f"account_id, created_at + INTERVAL 1 MICROSECOND, seq, kind, {number}, balance, load_number"
            )
            town.warehouse.run(
                [f"INSERT INTO lake.ledger ({columns}) SELECT {made} FROM lake.ledger {where}"]
            )
        else:
            town.warehouse.run([f"UPDATE lake.ledger SET {what} {where}"])
        found = list(auditor(town).audit([user]))
        mended = [f"DELETE FROM lake.ledger WHERE account_id = '{user}'", "INSERT INTO lake.ledger FROM kept"]
        town.warehouse.run(mended)
        assert seq in {each.fault.seq for each in found if (each.account, each.copy) == (user, WAREHOUSE)}, (
            what
        )
        assert {each.copy for each in found} == {WAREHOUSE}
    assert list(auditor(town).audit(town.users)) == []


def test_table_items_that_were_changed_are_named_by_account_and_place(town: Town) -> None:
    """The lake has no hashes of its own; its chain leads to the root, and the table's does not."""
    town.reconcile("night")
    town.curate()
    town.load()
    luck = random.Random(6)
    assert list(auditor(town).audit(town.users)) == []
    for _ in range(MANIPULATIONS):
        user = luck.choice(town.users)
        stored = town.entries(user)
        entry = dict(luck.choice(stored[1:]))
        seq = int(entry["seq"]["N"])
        name, value = luck.choice(
            [
                ("points", {"N": "4444"}),
                ("balance", {"N": "4444"}),
                ("event_id", {"S": "other"}),
                ("seq", {"N": str(seq + 1)}),
                ("kind", {"S": "ADJUST"}),
                ("drop", {}),
            ]
        )
        if name == "drop":
            town.delete("RewardsLedger", account_id=user, created_at=entry["created_at"]["S"])
        else:
            town.put("RewardsLedger", {**entry, name: value})
        found = list(auditor(town).audit([user]))
        town.put("RewardsLedger", entry)
        assert seq in {each.fault.seq for each in found if (each.account, each.copy) == (user, "table")}, name
    assert list(auditor(town).audit(town.users)) == []
