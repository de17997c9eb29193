"""The night's root, proofs against it, and copies of the ledger that somebody has changed (rule 19)."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from adapters.platform.objects import FolderObjects
from analytics.lake import layout
from analytics.ledger_copies import lake_copies
from analytics.proof import HEADS, LATEST, Head, LedgerTree, root_key
from analytics.reconcile.run_report import gather, is_whole, markdown
from analytics.steps.forget_function import ForgetSteps
from analytics.warehouse.warehouse import NoWarehouse
from local import check_proof, command, prove
from local.prove import LAKE, WAREHOUSE, Auditor, proof
from rules.days import stamp_of_key
from rules.engagement import proof as proving
from rules.engagement import reconciliation
from rules.engagement.proof import bucket_of, chain_of, hidden_fields, link_of
from rules.lake.residues import ErasureNames
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.forgetting import MemoryJobs, having
from tests.support.ledger_corruptions import LEDGER
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
MANIPULATIONS = effort(8, soak=3_400)  # in each of the three copies; tests/unit/proving tries 200 in memory
CROWD = effort(8, soak=85)  # in each round each of so many accounts is changed once
ALL = "9"  # every entry is old enough to be everywhere


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, request.node.name[5:24], 6) as made:
        yield made


@pytest.fixture
def crowd(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    """A town that a night has published a root of, and its three copies."""
    with lived_in(engine, tmp_path, request.node.name[5:24], CROWD) as made:
        made.reconcile("night")
        made.curate()
        made.load()
        assert list(auditor(made).audit(made.users)) == []
        yield made


def named_in(crowd: Town, copy: str, wanted: dict[str, tuple[int, str]]) -> None:
    """Assert that an audit names each of these accounts, at this seq, in this copy, and nothing else."""
    found: dict[tuple[str, str], set[int]] = {}
    for each in auditor(crowd).audit(crowd.users):
        found.setdefault((each.account, each.copy), set()).add(each.fault.seq)
    assert set(found) == {(user, copy) for user in wanted}
    for user, (seq, what) in wanted.items():
        assert seq in found[user, copy], what


def roots(town: Town) -> FolderObjects:
    return FolderObjects(town.folder / "roots")


def auditor(town: Town) -> Auditor:
    return Auditor(town.objects, town.accounts.ledger, town.warehouse, ALL)


def proven(town: Town, user: str, root: str, entry: str = "") -> list[str]:
    made = proof(town.objects, roots(town), town.accounts.ledger, user, entry)
    path = town.folder / "proof.json"
    path.write_text(json.dumps(made))
    return check_proof.check(path, root)


def test_a_night_publishes_a_root_against_which_each_entry_is_proven(town: Town) -> None:
    assert town.reconcile("dry", repair=False)["root"] is None
    with pytest.raises(RuntimeError, match="there is no root yet: the first nightly run publishes one"):
        proof(town.objects, roots(town), town.accounts.ledger, town.users[0])
    told = town.reconcile("night")["root"]
    assert told == json.loads(roots(town).get(LATEST)) == json.loads(roots(town).get(root_key("night")))
    assert told["accounts"] == town.size
    for user in town.users:
        for entry in town.entries(user):
            lines = proven(town, user, told["root"], stamp_of_key(entry["created_at"]["S"]))
            assert f"account_id: {user}" in lines
            assert f"seq: {entry['seq']['N']}" in lines
    with pytest.raises(ValueError, match="leads to the root"):
        proven(town, town.users[0], "00" * 32)
    with pytest.raises(RuntimeError, match="lacks nobody: the next nightly run adds the user"):
        proof(town.objects, roots(town), town.accounts.ledger, "nobody")


def test_the_commands_say_up_to_which_entry_and_what_was_changed(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, file = town.users[0], tmp_path / "made.json"
    monkeypatch.setattr(command, "find_stack", lambda *_: None)
    for name, store in (
        ("lake_of", town.objects),
        ("_roots_of", roots(town)),
        ("accounts_of", town.accounts),
    ):
        monkeypatch.setattr(prove, name, lambda _, store=store: store)
    monkeypatch.setattr(prove, "warehouse_of", lambda _: NoWarehouse())

    def said(which: click.Command, *words: str) -> str:
        done = CliRunner().invoke(which, words)
        return f"{done.output}{done.exception or ''}"

    making = ("--user", user, "--entry", "1", "--out", str(file), "--json")
    assert said(prove.make, *making) == "there is no root yet: the first nightly run publishes one"
    root = town.reconcile("night")["root"]
    town.curate()
    newest = int(town.entries(user)[-1]["seq"]["N"])
    town.apply([town.event(user, 300, 1)])
    town.curate()
    told = json.loads(said(prove.make, *making))
    assert told == {"entry": 1, "proven_up_to_entry": newest, "root": root["root"], "file": str(file)}
    assert said(prove.check_command, str(file), "--root", root["root"]).startswith("proven:\n")
    assert "is newer than the last root" in said(prove.make, "--user", user, "--entry", str(newest + 1))
    assert said(prove.audit_command) == f"{town.size} accounts; 0 faults\n"
    roots(town).put(root_key("night"), json.dumps({**root, "root": "00" * 32}).encode())
    assert "state/heads.json was changed: its root" in said(prove.make, *making)
    assert "state/heads.json was changed: its root" in said(prove.audit_command)
    assert "1 faults" in said(prove.audit_command)


def test_the_next_night_follows_the_days_change_and_names_the_root_before(town: Town) -> None:
    first = town.reconcile("first")["root"]
    user = town.users[0]
    before = LedgerTree.read(town.objects)
    town.apply([town.event(user, 300, 1)])
    town.curate()
    assert proven(town, user, first["root"]), "what came since has no root yet, and all before still has"
    second = town.reconcile("second")["root"]
    after = LedgerTree.read(town.objects)
    assert (second["before"], second["accounts"]) == (first["root"], first["accounts"])
    assert sum(one != other for one, other in zip(before.roots, after.roots, strict=True)) == 1
    assert "points: " in "".join(proven(town, user, second["root"]))
    assert before.leaves(town.objects, bucket_of(user)), "whoever reads the tree of before still can"
    town.apply([town.event(user, 301, 1)])
    town.curate()
    town.reconcile("third")
    assert after.leaves(town.objects, bucket_of(user))
    left = [each.key for each in town.objects.list("state/heads/")]
    assert len(left) == sum(each > 0 for each in after.accounts) + 1, "of the last two trees"
    assert HEADS not in left


def test_a_night_that_died_after_the_root_was_published_publishes_the_same_again(town: Town) -> None:
    told = town.reconcile("night")["root"]
    town.steps.collect({"run_id": "night", "repair": True}, town.now)
    assert json.loads(roots(town).get(LATEST)) == told


def test_a_night_that_died_before_it_stored_its_tree_is_gone_on_with(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its root is published. The same night again stores the tree; or else the next one goes on without it."""
    first = town.reconcile("first")["root"]

    def die(*_: object) -> None:
        raise ConnectionError

    for number, run_id in enumerate(("second", "third")):
        town.apply([town.event(town.users[0], 300 + number, 1)])
        town.curate()
        with monkeypatch.context() as dying:
            dying.setattr(LedgerTree, "store", die)
            with pytest.raises(ConnectionError):
                town.reconcile(run_id)
        assert json.loads(roots(town).get(LATEST))["run_id"] == run_id
        assert LedgerTree.read(town.objects).root.hex() == first["root"]
        assert proven(town, town.users[0], first["root"]), "against the root before, while there is no tree"
        if run_id == "second":
            town.steps.collect({"run_id": run_id, "repair": True}, town.now)
            first = json.loads(roots(town).get(LATEST))
            assert LedgerTree.read(town.objects).root.hex() == first["root"]
    fourth = town.reconcile("fourth")
    assert (fourth["root"]["before"], fourth["frozen"]) == (
        json.loads(roots(town).get(root_key("third")))["root"],
        [],
    )
    newest = town.entries(town.users[0])[-1]["seq"]["N"]
    assert f"seq: {newest}" in proven(town, town.users[0], fourth["root"]["root"])


def rewrite(town: Town, user: str, seq: int, name: str, value: str) -> None:
    """Change a text of an entry where it stands: in the table, and in the lake."""
    entry = next(each for each in town.entries(user) if each["seq"]["N"] == str(seq))
    town.put("RewardsLedger", {**entry, name: {"S": value}})
    for each in layout.curated_files(town.objects, "ledger"):
        path = town.folder / "lake" / each.key
        table = pq.read_table(path)
        rows = table.to_pylist()
        for row in rows:
            if (row["account_id"], row["seq"]) == (user, seq):
                row[name] = value
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def test_an_old_entry_that_was_changed_in_table_and_lake_contradicts_the_root(town: Town) -> None:
    """The two agree with each other. The root of the night before knows better."""
    town.reconcile("first")
    town.curate()
    user = town.users[0]
    rewrite(town, user, 1, "event_id", "2026-03-19T10:00:00.000000Z#another")
    told = town.reconcile("second", everybody=True)
    assert told["frozen"] == [user]
    newest = town.entries(user)[-1]["seq"]["N"]
    (disagreement,) = told["disagreements"]
    assert disagreement[1] == f"entry {newest}, or one before it, is not the one of the last root"
    with pytest.raises(RuntimeError, match="is not the one of the last root"):
        proof(town.objects, roots(town), town.accounts.ledger, user)
    without_warehouse = Auditor(town.objects, town.accounts.ledger, None, ALL)
    assert {each.account for each in without_warehouse.audit(town.users)} == {user}


def test_who_begins_after_a_night_is_on_the_way_to_the_copies(town: Town) -> None:
    town.load()
    town.reconcile("night")
    newcomer = "newcomer"
    town.apply([town.event(newcomer, 900, 1)])
    began = stamp_of_key(town.entries(newcomer)[1]["created_at"]["S"])
    later = Auditor(town.objects, town.accounts.ledger, town.warehouse, ALL)
    assert {each.copy for each in later.audit([newcomer])} == {LAKE, WAREHOUSE}, (
        "they lack all of the account"
    )
    on_the_way = Auditor(town.objects, town.accounts.ledger, town.warehouse, began)
    assert list(on_the_way.audit([newcomer])) == []


def test_copies_must_have_what_is_two_hours_older_than_the_last_night() -> None:
    now = datetime(2026, 3, 10, 17, tzinfo=UTC)
    assert prove.copied_before("", now) == ""
    assert prove.copied_before("2026-03-10T03:00:00+00:00", now) == "2026-03-10T01:00:00.000000Z"
    assert prove.copied_before("2026-03-10T17:00:01+00:00", now) == "2026-03-10T15:00:00.000000Z"


def test_an_entry_that_is_changed_before_its_first_night_is_found_beside_the_lake(town: Town) -> None:
    """No root has it. If lake and table are changed alike, no night can tell: docs/rules/ledger.md says so."""
    town.reconcile("first")
    one, both = town.users[:2]
    for number, user in enumerate((one, both)):
        town.apply([town.event(user, 300 + number, 1)])
    town.curate()
    newest = {user: town.entries(user)[-1] for user in (one, both)}
    town.put("RewardsLedger", {**newest[one], "event_id": {"S": "2026-03-19T10:00:00.000000Z#another"}})
    rewrite(town, both, int(newest[both]["seq"]["N"]), "event_id", "2026-03-19T10:00:00.000000Z#another")
    (fault,) = Auditor(town.objects, town.accounts.ledger, None, ALL).audit(town.users)
    assert (fault.account, fault.fault.seq) == (one, int(newest[one]["seq"]["N"]))
    assert "was flipped, unless the table is wrong: no root has it yet" in fault.text
    assert town.reconcile("second")["frozen"] == [one]


def test_a_stored_tree_that_was_changed_ends_the_publishing_of_roots(town: Town) -> None:
    """Somebody changes an old entry everywhere: in the table, in the lake, and in the tree over all ledgers."""
    first = town.reconcile("first")["root"]
    town.curate()
    user = town.users[0]
    rewrite(town, user, 1, "event_id", "2026-03-19T10:00:00.000000Z#another")
    chain = chain_of(user, list(map(link_of, town.accounts.ledger.after(user, "0")[0])))
    assert chain
    head = Head(bucket_of(user), chain.tag.hex(), chain.seq, chain.leaf.hex())
    kept, tree = town.objects.get(HEADS), LedgerTree.read(town.objects)
    tree.grown(town.objects, [head], tree.at, tree.run_id).store(town.objects)
    told = town.reconcile("second", everybody=True)
    assert (told["frozen"], told["root"]) == ([], None), "the ledger is the one of the changed tree"
    report = gather(town.objects, "second", town.now)
    assert not is_whole(report)
    assert "the tree over all ledgers was changed: its root" in markdown(report)
    with pytest.raises(RuntimeError, match=r"heads\.json was changed: its root"):
        proof(town.objects, roots(town), town.accounts.ledger, user)
    town.objects.put(HEADS, kept)
    told = town.reconcile("third", everybody=True)
    assert (told["frozen"], told["root"]["before"]) == ([user], first["root"])


def test_a_published_root_that_was_replaced_is_noticed(town: Town) -> None:
    """The bucket keeps both versions."""
    town.reconcile("first")
    root = json.loads(roots(town).get(LATEST))
    for key in (LATEST, root_key("first")):
        roots(town).put(key, json.dumps({**root, "root": "00" * 32}).encode())
    assert town.reconcile("second")["root"] is None
    assert "its root" in str(gather(town.objects, "second", town.now)["odd_objects"])


def test_each_way_to_corrupt_a_ledger_is_found_against_the_root(town: Town) -> None:
    town.reconcile("first")
    wrong = dict(zip(sorted(LEDGER)[: town.size - 1], town.users, strict=False))
    for what, user in wrong.items():
        LEDGER[what](town, user)
    kept = LedgerTree.read(town.objects)
    told = town.reconcile("second", everybody=True)
    assert {*told["frozen"]} >= {*wrong.values()}
    assert LedgerTree.read(town.objects).roots == kept.roots, (
        "who contradicts the root keeps the leaf of before"
    )


def test_a_fault_in_the_code_of_hashes_freezes_nobody_and_publishes_no_root(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "MANY_MIN", 3)
    kept = town.reconcile("first")["root"]
    forged = town.users[0]
    LEDGER["1000 points more"](town, forged)
    with monkeypatch.context() as faulty:
        faulty.setattr(proving, "hidden_fields", lambda entry: hidden_fields(entry)[::-1])
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


def changed_row(row: dict[str, Any], luck: random.Random) -> tuple[str, list[dict[str, Any]]]:
    """Return what was done to a row of the lake, and the rows in its place."""
    name = luck.choice(
        ["points", "balance", "event_id", "kind", "reason", "created_at", "drop", "add", "seq"]
    )
    if name == "drop":
        return name, []
    if name == "add":
        return name, [{**row, "points": 5555, "event_id": "one more"}, row]
    if name == "created_at":
        return name, [{**row, name: row[name].replace(microsecond=(row[name].microsecond + 1) % 10**6)}]
    changed = row["seq"] + 1 if name == "seq" else 7777 if name in ("points", "balance") else "OTHER"
    return name, [{**row, name: changed}]


def test_lake_files_that_were_changed_are_named_by_account_and_place(crowd: Town) -> None:
    luck = random.Random(3)
    paths = [crowd.folder / "lake" / each.key for each in layout.curated_files(crowd.objects, "ledger")]
    before = {path: path.read_bytes() for path in paths}
    files = {path: pq.read_table(path) for path in paths}
    places: dict[str, list[tuple[Path, int]]] = {}
    for path, table in files.items():
        for place, user in enumerate(table["account_id"].to_pylist()):
            places.setdefault(user, []).append((path, place))
    for _ in range(-(-MANIPULATIONS // CROWD)):
        wanted: dict[str, tuple[int, str]] = {}
        changed: dict[Path, dict[int, list[dict[str, Any]]]] = {}
        for user in crowd.users:
            path, place = luck.choice(places[user])
            row = files[path].slice(place, 1).to_pylist()[0]
            what, changed.setdefault(path, {})[place] = changed_row(row, luck)
            wanted[user] = row["seq"], what
        for path, by_place in changed.items():
            rows = [
                new for place, row in enumerate(files[path].to_pylist()) for new in by_place.get(place, [row])
            ]
            pq.write_table(pa.Table.from_pylist(rows, schema=files[path].schema), path)
        named_in(crowd, LAKE, wanted)
        for path in changed:
            path.write_bytes(before[path])
    assert list(auditor(crowd).audit(crowd.users)) == []


def test_the_chain_of_an_erased_person_still_leads_to_the_root(town: Town) -> None:
    town.reconcile("night")
    town.curate()
    user, other = town.users[:2]
    chain = chain_of(user, lake_copies(town.objects, [user])[user])
    seals = tuple(f"{each['seq']['N']} {each['salt']['S']}" for each in town.entries(user) if "salt" in each)
    jobs, at = MemoryJobs(), town.now + timedelta(days=3)
    jobs.add("e", town.now, user=user, seals=seals)
    town.objects.put("runs/forget/tasks.json", b"[]")
    event = {"run_id": "forget", "tasks_key": "runs/forget/tasks.json"}
    ForgetSteps(town.objects, cast("Any", jobs), None, timedelta(0)).forget(event, at)
    name = ErasureNames("salt of e").name_of(user)
    left = lake_copies(town.objects, [user, name])
    assert set(left) == {name}
    residue = chain_of(name, left[name])
    assert chain
    assert residue
    heads = LedgerTree.read(town.objects)
    assert heads.leaves(town.objects, bucket_of(user))[residue.tag].digest == residue.leaf == chain.leaf
    assert having(town.folder / "lake", [seals[0].split(" ")[1]]) == set(), "the salt is gone"
    assert list(Auditor(town.objects, town.accounts.ledger, None, ALL).audit([other])) == []
    place = len(left[name]) // 2
    raised = replace(left[name][place], shown=left[name][place].shown + b"1")
    other_chain = chain_of(name, [*left[name][:place], raised, *left[name][place + 1 :]])
    assert other_chain
    assert other_chain.leaf != residue.leaf


FLIPS = (
    *("points = points + 1", "balance = balance + 1", "event_id = 'other'", "kind = kind || 'X'"),
    "seq = seq + 1",
)
COPIED = "account_id, created_at, seq, kind, points, balance, load_number"


def test_warehouse_rows_that_were_changed_are_named_by_account_and_place(crowd: Town) -> None:
    luck = random.Random(4)
    seqs = {user: [int(each["seq"]["N"]) for each in crowd.entries(user)[1:]] for user in crowd.users}
    crowd.warehouse.run(["CREATE OR REPLACE TABLE kept AS SELECT * FROM lake.ledger"])
    for number in range(-(-MANIPULATIONS // CROWD)):
        wanted, statements = dict[str, tuple[int, str]](), list[str]()
        for user in crowd.users:
            seq, what = luck.choice(seqs[user]), luck.choice([*FLIPS, "drop", "add"])
            where = f"WHERE account_id = '{user}' AND seq = {seq}"
            made = (
                f"account_id, created_at + INTERVAL 1 MICROSECOND, seq, kind, {number}, balance, load_number"
            )
            statements.append(
                {
                    "drop": f"DELETE FROM lake.ledger {where}",
                    "add": f"INSERT INTO lake.ledger ({COPIED}) SELECT {made} FROM lake.ledger {where}",
                }.get(what, f"UPDATE lake.ledger SET {what} {where}")
            )
            wanted[user] = seq, what
        crowd.warehouse.run(statements)
        named_in(crowd, WAREHOUSE, wanted)
        crowd.warehouse.run(["DELETE FROM lake.ledger", "INSERT INTO lake.ledger SELECT * FROM kept"])
    assert list(auditor(crowd).audit(crowd.users)) == []


FLIPPED_ITEMS: tuple[tuple[str, Any], ...] = (
    ("points", {"N": "4444"}),
    ("balance", {"N": "4444"}),
    ("event_id", {"S": "other"}),
    ("kind", {"S": "OTHER"}),  # unreadable, as are the next two
    ("freeze", {"S": "OTHER"}),
    ("points", {"S": "many"}),
)


def changed_items(stored: list[Any], luck: random.Random) -> tuple[int, str, list[Any]]:
    """Change one of an account's entries in the table; return its seq, what was done, and all entries now."""
    at = luck.randrange(1, len(stored))
    seq = int(stored[at]["seq"]["N"])
    name, value = luck.choice(
        [*FLIPPED_ITEMS, ("seq", {"N": str(seq + 1)}), ("drop", {}), ("add", {}), ("swap", {})]
    )
    before, one, after = stored[:at], stored[at], stored[at + 1 :]
    if name == "drop":
        return seq, name, [*before, *after]
    if name == "add":
        key = one["created_at"]["S"]
        place = f"{key}5" if "." in key else f"{key}.0000005"  # just after it
        return seq, name, [*before, one, {**one, "created_at": {"S": place}}, *after]
    if name == "swap" and len(before) > 1:  # two entries change places
        other = before[-1]
        places = [{**one, "created_at": other["created_at"]}, {**other, "created_at": one["created_at"]}]
        return seq - 1, name, [*before[:-1], *places, *after]
    changed = {"points": {"N": "4445"}} if name == "swap" else {name: value}
    return seq, name, [*before, {**one, **changed}, *after]


def test_table_items_that_were_changed_are_named_by_account_and_place(crowd: Town) -> None:
    """The lake's entries lead to the root, and the table's do not."""
    luck = random.Random(6)
    before = {user: crowd.entries(user) for user in crowd.users}
    for _ in range(-(-MANIPULATIONS // CROWD)):
        wanted: dict[str, tuple[int, str]] = {}
        for user, stored in before.items():
            seq, what, now = changed_items(stored, luck)
            replaced(crowd, user, now)
            wanted[user] = seq, what
        named_in(crowd, "table", wanted)
        for user, stored in before.items():
            replaced(crowd, user, stored)
    assert list(auditor(crowd).audit(crowd.users)) == []


def replaced(crowd: Town, user: str, wanted: list[Any]) -> None:
    """Let the table have these entries of an account and no others."""
    places, now = {each["created_at"]["S"]: each for each in wanted}, crowd.entries(user)
    for each in now:
        if each["created_at"]["S"] not in places:
            crowd.delete("RewardsLedger", account_id=user, created_at=each["created_at"]["S"])
    for place, each in places.items():
        if {e["created_at"]["S"]: e for e in now}.get(place) != each:
            crowd.put("RewardsLedger", each)
