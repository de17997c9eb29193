"""Persons who were erased leave the lake, whenever the pass dies and whoever curates beside it."""

import base64
import gzip
import json
import random
import shutil
from collections import Counter
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from adapters.privacy.erasure_jobs import ErasureMoved
from analytics.curation.curate import BrokenSeal, curate
from analytics.curation.plan import plan, write_plan
from analytics.curation.raw_lines import unzip
from analytics.curation.recover import recover
from analytics.curation.sealed_file import is_broken
from analytics.forgetting.curated_rows import rewrite_for_persons
from analytics.forgetting.lake_pass import Progress
from analytics.forgetting.warehouse_rows import TABLES
from analytics.lake.layout import Partition, curated_partition
from analytics.lake.run_notes import (
    note_failed_task,
    note_odd_object,
    note_unloaded,
    odd_objects,
    remember_tasks,
)
from analytics.recompute.recompute import recompute
from analytics.reconcile.findings import Findings
from analytics.reconcile.run_report import gather, publish
from analytics.steps.forget_function import ForgetSteps
from analytics.steps.warehouse_function import ItemWorker, WarehouseSteps
from analytics.warehouse.night import Item, Kind, State, WarehouseNight
from analytics.warehouse.warehouse import NoWarehouse
from rules.days import stamp
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import frame_record, record_header
from rules.lake.residue import PERSONS, RESIDUES
from rules.lake.residues import ErasureNames, is_residue
from rules.privacy.erasures import Erasure, PersonKind
from rules.privacy.tombstones import Tombstone, user_subject
from tests.support.dying import DyingFolder, Killed
from tests.support.effort import effort
from tests.support.forgetting import MemoryJobs, having, write_raw
from tests.support.lake_corruptions import spoil
from tests.support.lake_story import Story
from tests.support.raw_lake import ARRIVED, PLACE, event, put_raw, rows, total

NOW = datetime(2026, 3, 9, 2, 30, tzinfo=UTC)
USER, OTHER, LEAD = "o'brien@example.org", "user-3", "lead-00"
MUTATING = ("put", "put_if", "delete", "forget_former")


class Stones:
    """Stands for adapters.privacy.tombstones.Tombstones."""

    def __init__(self, **stones: Tombstone) -> None:
        self.stones = {user_subject(name): each for name, each in stones.items()}

    def look(self) -> Any:
        return self.stones

    def of(self, subject: str) -> Tombstone | None:
        return self.stones.get(subject)


@pytest.fixture(scope="module", params=[False, True], ids=["files of hours", "files of months"])
def story_lake(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Path, Story]:
    root, story = tmp_path_factory.mktemp("story"), Story(days=2)
    objects = FolderObjects(root)
    write_raw(story.first_part(), objects, "one", arrived="2026-03-01", by_month=request.param)
    write_raw(story.late_part(), objects, "two", arrived="2026-03-08")
    return root, story


@pytest.fixture
def lake(story_lake: tuple[Path, Story], tmp_path: Path) -> FolderObjects:
    shutil.copytree(story_lake[0], tmp_path / "lake")
    return FolderObjects(tmp_path / "lake")


def waiting() -> MemoryJobs:
    jobs = MemoryJobs()
    jobs.add("of-user", NOW, user=USER, person="a" * 32, phone="a" * 32)
    jobs.add("of-lead", NOW, PersonKind.LEAD, lead=LEAD)
    return jobs


def night(
    objects: FolderObjects,
    jobs: Any,
    run_id: str,
    at: datetime = NOW,
    *fresh: Partition,
    stones: Any = None,
    is_warehouse_there: bool = True,
) -> None:
    """A night's pass, in as many calls as it takes; the warehouse of it has nobody, or is away."""
    tasks = [{"entity": each.entity, "dt": each.dt, "hour": each.hour} for each in fresh]
    objects.put(f"runs/{run_id}/tasks.json", json.dumps(tasks).encode())
    steps = ForgetSteps(objects, jobs, stones, timedelta(days=2))
    while steps.forget({"run_id": run_id, "tasks_key": f"runs/{run_id}/tasks.json"}, at)["is_left"]:
        pass
    key = f"runs/{run_id}/forget.json"
    objects.put(
        key, json.dumps(json.loads(objects.get(key)) | {"is_warehouse_done": is_warehouse_there}).encode()
    )
    steps.finish({"run_id": run_id})


def told(objects: FolderObjects) -> dict[str, Counter[str]]:
    """All curated rows, by entity."""
    return {entity: Counter(map(repr, rows(objects, entity))) for entity in ENTITIES}


NAMES = (USER, LEAD, "a" * 32)


def test_a_file_that_was_changed_by_hand_is_still_one_when_a_person_has_left_it(
    objects: FolderObjects,
) -> None:
    put_raw(objects, "a", [event(1, user_id=USER), event(2, user_id=OTHER)])
    curate(objects, PLACE)
    (stored,) = objects.list("curated/events/")
    spoil(objects, "events", "points_awarded", lambda row: row["user_id"] == OTHER)
    assert is_broken(objects, stored.key)
    night(objects, waiting(), "one")
    assert having(objects.root, NAMES) == set()
    assert is_broken(objects, stored.key)
    with pytest.raises(BrokenSeal):
        curate(objects, PLACE, arrived=[])


def test_nobody_is_left_others_stay_and_sums_are_the_same(lake: FolderObjects) -> None:
    before = {entity: rows(lake, entity) for entity in ENTITIES}
    counts = {entity: total(lake, entity) for entity in ENTITIES}
    jobs = waiting()
    night(lake, jobs, "one")
    assert having(lake.root, NAMES) == set()
    for entity, column in PERSONS.items():
        others = [row for row in before[entity] if row[column] not in NAMES]
        after = rows(lake, entity)
        assert [row for row in after if not is_residue(row[column])] == others
        gone = len(before[entity]) - len(after)
        assert gone == (0 if entity in RESIDUES else len(before[entity]) - len(others))
        found = total(lake, entity)
        assert found.curated == len(after)
        assert found.in_ == found.curated + found.duplicates + found.quarantined == counts[entity].in_ - gone
    points = {row["account_id"]: 0 for row in rows(lake, "ledger")}
    for row in rows(lake, "ledger"):
        points[row["account_id"]] += row["points"]
    name = ErasureNames("salt of of-user").name_of(USER)
    assert points[name] == sum(row["points"] for row in before["ledger"] if row["account_id"] == USER)
    later = NOW.date() + timedelta(days=100)  # when a month that has one file is past
    (user,) = [row for row in recompute(lake, later).table.to_pylist() if row["user_id"] == name]
    assert (user["sound"], user["balance"]) == (True, points[name])
    of_user, of_lead = jobs.all["of-user"], jobs.all["of-lead"]
    assert of_user.found["events"] == sum(row["user_id"] == USER for row in before["events"])
    assert of_lead.found["lead_events"] > 0
    assert (of_user.is_done, of_user.found_now > 0) == (False, True)

    night(lake, jobs, "too-early", NOW + timedelta(days=1))
    assert not jobs.all["of-user"].is_done
    night(lake, jobs, "two", NOW + timedelta(days=3))
    assert [(each.is_done, each.found_now) for each in jobs.all.values()] == [(True, 0), (True, 0)]


def test_what_a_night_without_a_warehouse_removes_is_certified(tmp_path: Path) -> None:
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW, user=USER)
    put_raw(lake, "a", [event(1, user_id=USER), event(2, user_id=OTHER)])
    curate(lake, PLACE)
    night(lake, jobs, "away", is_warehouse_there=False)
    assert (jobs.all["e"].found["events"], jobs.all["e"].passes) == (1, 0)
    ForgetSteps(lake, jobs, None, timedelta(days=2)).finish({"run_id": "away"})  # type: ignore[arg-type]
    night(lake, jobs, "there", NOW + timedelta(days=1))
    assert (jobs.all["e"].found["events"], jobs.all["e"].passes) == (1, 1)
    put_raw(lake, "late", [event(3, user_id=USER)])
    curate(lake, PLACE)
    night(lake, jobs, "before it is due", NOW + timedelta(hours=25), PLACE)
    assert (jobs.all["e"].found["events"], jobs.all["e"].passes) == (2, 1)


def test_a_file_that_could_not_be_rewritten_counts_once_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW, user=USER)
    put_raw(lake, "a", [event(1, user_id=USER), event(2, user_id=OTHER)])
    curate(lake, PLACE)

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("analytics.forgetting.lake_pass.rewrite_for_persons", fail)
        for run_id in ("one", "two"):
            for _ in range(2):
                with pytest.raises(MemoryError):
                    night(lake, jobs, run_id)
            ForgetSteps(lake, jobs, None, timedelta(days=2)).finish({"run_id": run_id})  # type: ignore[arg-type]
    night(lake, jobs, "three")
    assert jobs.all["e"].found["events"] == 1


def test_a_file_that_curation_writes_meanwhile_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, jobs, rewrites = FolderObjects(tmp_path), MemoryJobs(), 0
    jobs.add("e", NOW, user=USER)
    put_raw(lake, "a", [event(1, user_id=USER), event(2, user_id=OTHER)])
    curate(lake, PLACE)

    def rewrite_after_curation(*args: Any) -> None:
        nonlocal rewrites
        rewrites += 1
        if rewrites == 1:
            put_raw(lake, "b", [event(3, user_id=OTHER)])
            curate(lake, PLACE)
        rewrite_for_persons(*args)

    monkeypatch.setattr("analytics.forgetting.lake_pass.rewrite_for_persons", rewrite_after_curation)
    night(lake, jobs, "one")
    assert (rewrites, jobs.all["e"].found["events"]) == (2, 1)


def test_an_erasure_that_is_signed_meanwhile_is_no_error(tmp_path: Path) -> None:
    class SigningJobs(MemoryJobs):
        def save(self, erasure: Erasure) -> Erasure:
            del self.all[erasure.erasure_id]
            raise ErasureMoved(erasure.erasure_id)

    lake, jobs = FolderObjects(tmp_path), SigningJobs()
    jobs.add("e", NOW, user=USER)
    night(lake, jobs, "one")
    assert jobs.all == {}


def test_a_night_is_noted_in_an_erasure_that_was_moved(tmp_path: Path) -> None:
    class MovingJobs(MemoryJobs):
        saves = 0

        def save(self, erasure: Erasure) -> Erasure:
            self.saves += 1
            if self.saves == 1:
                raise ErasureMoved(erasure.erasure_id)
            return super().save(erasure)

    lake, jobs = FolderObjects(tmp_path), MovingJobs()
    jobs.add("e", NOW, user=USER)
    night(lake, jobs, "one")
    assert (jobs.saves, jobs.all["e"].passes) == (2, 1)


def test_it_survives_death_at_any_change_with_curation_beside_it(
    lake: FolderObjects, story_lake: tuple[Path, Story], tmp_path: Path
) -> None:
    """The files are in the end as those of a pass that nobody has disturbed."""
    shutil.copytree(lake.root, tmp_path / "calm")
    calm, jobs, calm_jobs = FolderObjects(tmp_path / "calm"), waiting(), waiting()
    places = sorted(filter(None, (curated_partition(each.key) for each in lake.list("curated/"))), key=str)
    night(calm, calm_jobs, "one")
    chance = random.Random(5)
    deaths, is_over, most = 0, False, effort(5, soak=200)
    while not is_over:
        at = chance.randrange(1, 30) if deaths < most else 10**9
        dying = DyingFolder.at(lake.root, at, chance.choice(["before", "after"]))
        try:
            night(dying, jobs, "one")
            is_over = True
        except Killed:
            deaths += 1
            for place in chance.sample(places, 15):
                curate(lake, place)
    assert deaths > 3
    assert having(lake.root, NAMES) == set()
    assert told(lake) == told(calm)
    for name, erasure in calm_jobs.all.items():
        for store, number in erasure.found.items():
            assert jobs.all[name].found[store] >= number, "a crash counts nothing less"


def test_what_stays_outlives_rebuilds_and_compaction(lake: FolderObjects) -> None:
    night(lake, waiting(), "one")
    before = told(lake)
    reasons: list[str] = []
    listed = sorted(
        {found for each in lake.list("curated/") if (found := curated_partition(each.key))}, key=str
    )
    places = [
        each
        for _, of_entity in groupby(listed, key=lambda each: each.entity)
        for at, each in enumerate(of_entity)
        if each.is_month or at % effort(24, soak=1) == 0
    ]
    for place in places:
        curate(lake, place, rebuild=True, note_lack=reasons.append)
    for day in sorted({Partition(each.entity, each.dt, None) for each in places}, key=str):
        curate(lake, day)
    assert told(lake) == before
    assert "persons were erased" in reasons


def test_lines_that_are_refused_misplaced_or_not_curated_go_too(tmp_path: Path) -> None:
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW, user="canary-user")
    mine, other = event(1, user_id="canary-user", note="canary-text"), event(2, user_id="ann")
    bad, cut = {**mine, "points_awarded": "canary-text"}, b'{"user_id":"canary-user","no'
    refused = put_raw(lake, "refused", [mine, bad, cut, other])
    loose = put_raw(lake, "loose", [mine, other], Partition("events", "2026-03-02", "05"), packed=2)
    lake.put("raw/events/nowhere", json.dumps(mine).encode() + b"\n")
    packed = lake.get(
        put_raw(lake, "x", [mine, other], Partition("events", "2026-03-03", "05"), zipped=False)
    )
    lake.put(f"raw/events/arrived={ARRIVED}/dt=2026-03-03/hour=05/x", b"")
    for name, data in (("a", packed), ("b", json.dumps(mine).encode())):
        lake.put(f"errors/events/{name}", json.dumps({"rawData": base64.b64encode(data).decode()}).encode())
    curate(lake, Partition("events", "2026-03-01", "05"))
    lake.put("state/users.parquet", lake.get("curated/events/dt=2026-03-01/hour-05.parquet"))
    lake.put("reports/old.md", b"differs: `canary-user`")
    lake.put("reports/other.md", b"differs: `canary-user-2`, `ann`")
    assert len(having(tmp_path, ["canary-user"])) >= 7
    at = datetime.now(UTC)
    night(lake, jobs, "one", at)
    assert having(tmp_path, ["canary-user", "canary-text"]) == {"reports/other.md"}
    assert [row["user_id"] for row in rows(lake) if not is_residue(row["user_id"])] == ["ann"]
    assert lake.etag("state/users.parquet") is None
    assert lake.etag("reports/old.md") is None
    assert b"ann" in base64.b64decode(json.loads(lake.get("errors/events/a"))["rawData"])
    assert lake.etag("errors/events/b") is None
    for key in (refused, loose):
        assert having(tmp_path, ["ann"]) >= {key}
    found = jobs.all["e"].found
    assert found["events"] == 1
    assert found["raw, quarantine, errors"] >= 7


def test_a_longer_name_that_contains_an_erased_one_is_somebody_elses(tmp_path: Path) -> None:
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW, user="ann")
    for number, others in enumerate(("ann@example.com", "joe@ann", "mary.ann", "ann-2", "ann.lee")):
        lake.put(f"reports/others-{number}.md", f"differs: {others}, `{others}`.".encode())
        lake.put(f"state/others-{number}.json", json.dumps([others]).encode())
    for number, text in enumerate(("differs: ann.", '["ann"]', "@ann: see ann@ home", "1. ann", "a/ann.csv")):
        lake.put(f"reports/mine-{number}.md", text.encode())
    night(lake, jobs, "one", datetime.now(UTC))
    assert not list(lake.list("reports/mine-"))
    assert len([*lake.list("reports/others-"), *lake.list("state/others-")]) == 10


def error_record(data: bytes, **more: Any) -> bytes:
    told = {"errorCode": "Firehose.DynamicPartitioning.X", **more, "rawData": base64.b64encode(data).decode()}
    return json.dumps(told).encode() + b"\n"


MINE, THEIRS = (
    json.dumps(event(each, user_id=user)).encode() for each, user in ((1, "canary-user"), (2, "ann"))
)
BOTH = frame_record(record_header("2026-03-01", "05"), [MINE, THEIRS])
RECORDS = [
    error_record(BOTH),
    error_record(MINE),
    error_record(THEIRS),
    error_record(BOTH, errorMessage='no "canary-user"'),
]
CUT = b"".join(RECORDS)[: -len(RECORDS[-1]) // 2]  # the last record ends within its base64
ERROR_OBJECTS = {
    "lines": b"".join(RECORDS),
    "one line": b"".join(each.strip() for each in RECORDS),
    "indented": b"".join(json.dumps(json.loads(each), indent=2).encode() for each in RECORDS),
    "list": json.dumps([json.loads(each) for each in RECORDS]).encode(),
    "escaped": b"".join(RECORDS).replace(b"/", b"\\/"),
    "a message": b"".join(RECORDS)
    + error_record(THEIRS, errorMessage='no "canary-user"', details={"of": ["canary-user"]}),
    "cut off": CUT,
    "its begin is cut off": b"".join(RECORDS[:3]) + RECORDS[0][90:] + RECORDS[2],
    "no record": MINE + b"\n" + THEIRS + b"\n" + RECORDS[2],
    "a byte order mark": b"\xef\xbb\xbf" + b"".join(RECORDS),
}
WAYS: dict[str, Any] = {
    "plain": bytes,
    "zipped": gzip.compress,
    "in members": lambda text: gzip.compress(text[:500]) + gzip.compress(text[500:]),
    "garbage behind": lambda text: gzip.compress(text) + b"garbage",
    "cut in the second member": lambda text: gzip.compress(text) + gzip.compress(RECORDS[1])[:-9],
    "cut in the first member": lambda text: gzip.compress(text)[:-4],
    "a damaged member": lambda text: gzip.compress(text) + damaged(RECORDS[1]) + gzip.compress(RECORDS[2]),
}


def damaged(text: bytes) -> bytes:
    """A member whose checksum is wrong: unzip tells all of it, and then an error."""
    zipped = bytearray(gzip.compress(text))
    zipped[-6] ^= 0xFF
    return bytes(zipped)


def test_errors_of_firehose_name_nobody_however_they_are_laid_out(tmp_path: Path) -> None:
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW, user="canary-user")
    keys = {
        f"errors/{entity}/x/{way}/{name}": zipped(text)
        for name, text in ERROR_OBJECTS.items()
        for entity in ("events", "nothing")
        for way, zipped in WAYS.items()
    }
    for key, data in keys.items():
        lake.put(key, data)
    assert having(tmp_path, ["canary-user"]) == keys.keys()
    night(lake, jobs, "one")
    assert having(tmp_path, ["canary"]) == set()
    assert having(tmp_path, ["ann"]) == keys.keys()
    before = {key: lake.get(key) for key in keys}
    night(lake, jobs, "two", NOW + timedelta(days=3))
    assert {key: lake.get(key) for key in before} == before, "again it changes nothing"
    assert jobs.all["e"].is_done
    recover(lake, NOW.date(), lambda _key, _reason: None)
    assert b"canary" not in b"".join(lake.get(each.key) for each in lake.list("raw/"))
    assert having(tmp_path, ["ann"]) >= {
        f"raw/events/arrived={NOW:%Y-%m-%d}/dt=2026-03-01/hour=05/recovered/x/{way}/{name}"
        for name in ("lines", "one line")
        for way in WAYS
    }


CUT_OFF = {
    "in the whole member": gzip.compress(MINE + b"\n" + THEIRS) + gzip.compress(THEIRS)[:-5],
    "in the cut one": gzip.compress(THEIRS) + gzip.compress(THEIRS + b"\n" + MINE + b"\n")[:-5],
    "in the cut one, alone": gzip.compress(THEIRS + b"\n" + MINE + b"\n")[:-5],
    "in a damaged one": gzip.compress(THEIRS) + damaged(MINE) + gzip.compress(THEIRS),
    "in plain lines behind": gzip.compress(THEIRS)[:-5] + MINE + b"\n",
    "in a cut line": gzip.compress(THEIRS + b"\n" + MINE[:-10]),
}


@pytest.mark.parametrize("state", ["curated", "not curated", "failed beside others", "no quarantine"])
def test_raw_objects_that_cannot_be_read_whole_name_nobody(tmp_path: Path, state: str) -> None:
    """Nothing of what nobody can unzip whole is in a curated file that would lead to it."""
    lake, jobs, place = FolderObjects(tmp_path), MemoryJobs(), Partition("events", "2026-03-01", "05")
    jobs.add("e", NOW, user="canary-user")
    put_raw(lake, "first", [THEIRS])
    if state == "failed beside others":
        curate(lake, place)
        remember_tasks(lake, [], [place])
    keys = {
        f"raw/events/arrived={ARRIVED}/dt=2026-03-01/hour=05/{name}": data for name, data in CUT_OFF.items()
    }
    for key, data in keys.items():
        lake.put(key, data)
    if state in ("curated", "no quarantine"):
        curate(lake, place)
    if state == "no quarantine":
        lake.delete([each.key for each in lake.list("quarantine/")])
    assert having(tmp_path, ["canary-user"]) >= keys.keys()
    night(lake, jobs, "one")
    assert having(tmp_path, ["canary-user"]) == set()
    assert having(tmp_path, ["ann"]) >= keys.keys()
    night(lake, jobs, "two", NOW + timedelta(days=3))
    assert jobs.all["e"].is_done
    curate(lake, place)
    assert {row["user_id"] for row in rows(lake)} <= {"ann", ErasureNames("salt of e").name_of("canary-user")}
    assert having(tmp_path, ["canary-user"]) == set()


def left_by_a_run(lake: FolderObjects, run_id: str) -> set[str]:
    """What a run keeps that names a user, a lead and a phone, in each form that files of runs have."""
    tables = {
        "shares/0000/streaks.parquet": {"user_id": ["canary-user", "ann"], "balance": [5, 6]},
        "shares/0001/curated/ledger/dt=2026-03-01/day.parquet": {"account_id": ["canary-user"]},
        "unloaded/leads.parquet": {"lead_organization_id": ["canary-lead"]},
        "unloaded/phones.parquet": {"phone": ["canary-phone"]},
    }
    for name, columns in tables.items():
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink)
        lake.put(f"runs/{run_id}/{name}", sink.getvalue().to_pybytes())
    lake.put(f"runs/{run_id}/failed_shares/0000.json", b'{"error": "of canary-user"}')
    lake.put(f"runs/{run_id}/plan.json", b"{}")
    return having(lake.root, ["canary"])


@pytest.mark.parametrize("ends", ["before", "between", "never"])
def test_no_certificate_while_a_file_of_a_run_names_somebody_however_young_it_is(
    tmp_path: Path, ends: str
) -> None:
    """Nights are minutes apart. A run that has its report is over; one without may still read its files."""
    lake, jobs, now = FolderObjects(tmp_path), MemoryJobs(), datetime.now(UTC)
    jobs.add("e", NOW, user="canary-user", phone="canary-phone")
    jobs.add("l", NOW, PersonKind.LEAD, lead="canary-lead")
    jobs.add("other", NOW, user="ben")
    files = left_by_a_run(lake, "by-hand-1")
    assert len(files) == 5
    report = "reports/by-hand-1.json"
    if ends == "before":
        lake.put(report, b"{}")
    for number in range(3):
        night(lake, jobs, f"n{number}", now + timedelta(minutes=number))
        lake.put(f"reports/n{number}.json", b"{}")
        assert having(tmp_path, ["canary"]) == (set() if ends == "before" else files)
    done = {name: each.is_done for name, each in jobs.all.items()}
    assert done == {"e": ends == "before", "l": ends == "before", "other": True}
    if ends == "between":
        lake.put(report, b"{}")
    later = now + (timedelta(hours=8) if ends == "never" else timedelta(minutes=5))
    for number in range(3, 5):
        night(lake, jobs, f"n{number}", later + timedelta(minutes=number))
        assert having(tmp_path, ["canary"]) == set()
        assert jobs.all["e"].is_done == (ends == "before" or number == 4), "the last pass finds nothing"
    assert all(each.is_done for each in jobs.all.values())
    assert lake.etag("runs/by-hand-1/plan.json"), "what names nobody stays"
    removed = {name: each.found["state, runs, reports"] for name, each in jobs.all.items() if name != "other"}
    assert removed == {"e": 4, "l": 1}, "what is left is not counted until it is deleted"


def test_rows_that_come_after_the_erasure_is_over_go_that_night_with_their_lines(tmp_path: Path) -> None:
    lake, jobs, place = FolderObjects(tmp_path), MemoryJobs(), Partition("events", "2026-03-01", "05")
    lifted = Tombstone("2026-02-01T00:00:00.000000Z", "over", "2026-03-01T05:00:00.000005Z")
    stones = Stones(gone=Tombstone("2026-02-01T00:00:00.000000Z", "old"), anew=lifted)
    sent = [event(each, user_id=user) for each, user in enumerate(["gone", "ann", "anew", "gone"])]
    put_raw(lake, "late", [*sent, event(7, user_id="anew")])
    curate(lake, place)
    night(lake, jobs, "unasked", NOW, stones=stones)
    assert len(rows(lake)) == 5, "only files of this night are looked at"
    night(lake, jobs, "asked", NOW, place, stones=stones)
    assert [(row["user_id"], row["event_id"][-2:]) for row in rows(lake)] == [("ann", "e1"), ("anew", "e7")]
    assert having(tmp_path, ["gone"]) == set()
    curate(lake, place)
    assert len(rows(lake)) == 2


def test_a_row_that_comes_between_the_nights_gets_the_same_name(tmp_path: Path) -> None:
    lake, jobs, place = FolderObjects(tmp_path), MemoryJobs(), Partition("events", "2026-03-01", "05")
    jobs.add("e", NOW, user="canary-user")
    sent = [event(each, user_id="canary-user") for each in range(3)]
    put_raw(lake, "first", sent[:2])
    curate(lake, place)
    night(lake, jobs, "one")
    put_raw(lake, "late", sent[1:])
    curate(lake, place)
    assert len(rows(lake)) == 4
    night(lake, jobs, "two", NOW + timedelta(days=3))
    assert {row["user_id"] for row in rows(lake)} == {ErasureNames("salt of e").name_of("canary-user")}
    assert len(rows(lake)) == 3
    assert not jobs.all["e"].is_done
    night(lake, jobs, "three", NOW + timedelta(days=4))
    assert jobs.all["e"].is_done


def test_a_model_that_was_not_built_is_awaited(tmp_path: Path) -> None:
    """It may still tell a word that nobody else has, such as a source."""
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW, user="ann")
    lake.put("runs/one/tasks.json", b"[]")
    waits: Any = jobs
    ForgetSteps(lake, waits, None, timedelta(0)).forget(
        {"run_id": "one", "tasks_key": "runs/one/tasks.json"}, NOW
    )
    steps = WarehouseSteps(NoWarehouse(), lake, str(tmp_path), "")
    forgets, model = Item(Kind.FORGET, "persons", State.DONE), Item(Kind.MODEL, "marts.x", State.FAILED)
    for items, is_done in (([forgets, model], False), ([forgets], True)):
        steps._note_forgotten(WarehouseNight("one", "", False, False, items))
        progress = Progress.read(lake, "one")
        assert progress
        assert progress.is_warehouse_done is is_done


def test_a_warehouse_that_deletes_nothing_counts_nothing(tmp_path: Path) -> None:
    class Table(NoWarehouse):
        is_broken = True
        number = 1

        def rows(self, sql: str) -> list[dict[str, Any]]:
            if sql == TABLES:
                return [{"name": "marts.x", "col": "user_id"}]
            return [{"person": USER, "number": self.number}] * self.number

        def run(self, statements: Any) -> None:
            if self.is_broken:
                raise ConnectionError
            self.number = 0

    lake, jobs, table = FolderObjects(tmp_path), MemoryJobs(), Table()
    jobs.add("e", NOW, user=USER)
    steps = ForgetSteps(lake, jobs, None, timedelta(days=2))  # type: ignore[arg-type]
    for run_id in ("one", "two", "three"):
        lake.put(f"runs/{run_id}/tasks.json", b"[]")
        steps.forget({"run_id": run_id, "tasks_key": f"runs/{run_id}/tasks.json"}, NOW)
        table.is_broken = run_id != "three"
        warehouse = WarehouseSteps(table, lake, "", "", jobs.opened)
        worker = ItemWorker(warehouse, WarehouseNight(run_id, stamp(NOW), False, False, []))
        with pytest.raises(ConnectionError) if table.is_broken else nullcontext():
            worker.do(Item(Kind.FORGET, "persons"))
        steps.finish({"run_id": run_id})
        steps.finish({"run_id": run_id})
    assert jobs.all["e"].found["Warehouse"] == 1


ODD_IDS = [
    *("7", "41", "0", "4.91771E+12", "2026-11-28", "12:30", "deadbeef", "null", "true", "None", "ann"),
    *("events", "max", "users", "user_id", "ledger", "daily_activity", "marts.daily_actives", "EARN", "day"),
    *("reports/n1.json", "dt=2026-11-28", "reports"),
    # Signs between our files' words, alone and with a word beside them
    *(
        "{",
        "}",
        "[",
        "|",
        ":",
        "=",
        "/",
        "*",
        "`",
        "[]",
        "},{",
        "|7|",
        "41]",
        ":7,",
        "null}",
        "]}",
        "[true",
        "max=7",
        "(7)",
    ),
    *("-", "--", "3/31", "1e5", "0x7", "NaN", "-1", "T00:00:00Z", "~7", "7;", "s3://", "__", "n", "S"),
]


def of_nights(lake: FolderObjects, run_id: str, ids: list[str]) -> None:
    """What a night leaves beside rows; with ids of some users wherever it has ids."""
    difference = {"table": "UserStreaks", "key": "", "attribute": "max", "stored": 7, "expected": 41}
    findings = Findings(users=7, compared=41, after=ids[0] if ids else None)
    findings.different = findings.frozen = ids
    findings.differences = [{"user_id": each, **difference} for each in ids]
    findings.disagreements = [[each, "the entry 7 of 41 is lacking"] for each in ids]
    findings.doubted = {"lacking": {each: ["entry 7"] for each in ids}}
    findings.save(lake, run_id)
    note_failed_task(lake, run_id, PLACE, {"Error": "KeyError", "Cause": "no max of 7 users: events"})
    for each in ids:
        note_failed_task(lake, run_id, PLACE, {"Error": "KeyError", "Cause": f"'{each}'"})
        note_odd_object(lake, run_id, f"ledger of {each}", "its goals cannot be folded")
    publish(lake, gather(lake, run_id, NOW))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"user_id": ["bob", *ids], "event_type": ["max", *ids]}), sink)
    lake.put(f"state/users/{len(ids)}/0000.parquet", sink.getvalue().to_pybytes())
    lines = [json.dumps({"user_id": {"S": each}, "dt": "2026-11-28", "n": 7}) for each in ("bob", *ids)]
    lake.put(f"runs/{run_id}/shares/0000/profiles/0000.ndjson.gz", gzip.compress("\n".join(lines).encode()))
    changes = [{"user_id": each, "why": ["7 events"]} for each in ("bob", *ids)]
    outcome = {"report": {"by_type": {"events": 7}, "max": 41, "largest_changes": changes}}
    lake.put(f"what_if/{run_id}.json", json.dumps(outcome).encode())
    cells = "".join(f'"{each}","7","2026-11-28"\n' for each in ("bob", *ids))
    lake.put(f"athena/{run_id}.csv", f'"user_id","max","events"\n{cells}'.encode())
    state = {
        "watermark": "2026-11-28T12:30:41+00:00",
        "past_days": [{"entity": "events", "dt": "2026-11-28"}],
    }
    lake.put("state/watermark.json", json.dumps(state).encode())


@pytest.mark.parametrize("user", ODD_IDS)
def test_an_id_may_be_a_number_or_a_word_of_our_own_files(tmp_path: Path, user: str) -> None:
    """It is found where our files have ids. What names nobody stays as it is, and the erasure ends."""
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW - timedelta(days=3), user=user)
    put_raw(lake, "a", [event(1, user_id=user), event(2, user_id="bob"), b'{"event_type":"events","max":"7"'])
    curate(lake, PLACE)
    of_nights(lake, "without", [])
    note_unloaded(lake, "without", [PLACE])
    lake.put("athena/without.csv.metadata", b"\0\1users max 7 of 41, " + b"events " * 30_000)
    others = {
        each.key: lake.get(each.key)
        for each in lake.list("")
        if not each.key.startswith(("raw/", "curated/"))
    }
    of_nights(lake, "n1", [user])
    lake.put("reports/n1.txt", f"ask {user}".encode())
    for number in range(2):
        night(lake, jobs, f"f{number}", NOW + timedelta(days=1, hours=number))
        lake.put(f"reports/f{number}.json", b"{}")
    assert {key: lake.get(key) for key in others if lake.etag(key)} == others
    assert [each.key for each in lake.list("") if "n1" in each.key] == []
    assert lake.etag("state/users/1/0000.parquet") is None
    assert b'"event_type":"events","max":"7"' in unzip(lake.get(next(lake.list("raw/")).key))
    assert {row["user_id"] for row in rows(lake) if not is_residue(row["user_id"])} == {"bob"}
    assert jobs.all["e"].is_done


def test_a_stray_that_names_somebody_is_cleaned_or_awaited(tmp_path: Path) -> None:
    lake, jobs = FolderObjects(tmp_path), MemoryJobs()
    jobs.add("e", NOW - timedelta(days=3), user="canary-user")
    mine, other = (json.dumps(event(1, user_id=user)).encode() + b"\n" for user in ("canary-user", "ann"))
    lines, table = (
        "raw/events/arrived=2026-03-01/copy",
        "raw/events/arrived=2026-03-01/dt=2026-03-01/copy.csv",
    )
    lake.put(lines, mine + other)
    lake.put(table, b"user_id,n\ncanary-user,7\n")
    for number in range(4):
        run_id = f"f{number}"
        write_plan(lake, run_id, plan(lake, NOW.date()))
        if number == 2:
            assert not jobs.all["e"].is_done
            lake.delete([table])
        night(lake, jobs, run_id, NOW + timedelta(days=1, hours=number))
        named = {each["object"] for each in odd_objects(lake, run_id)}
        assert named == ({table} if number < 2 else set())
        lake.put(f"reports/{run_id}.json", b"{}")
    assert lake.get(lines) == other
    assert having(tmp_path, ["canary-user"]) == set()
    assert jobs.all["e"].is_done
