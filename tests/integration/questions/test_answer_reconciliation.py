"""Stats that drift from the responses are named, repaired where lake and table agree, and left alone where not."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import FolderObjects
from adapters.platform.tables import scan_all
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import UserStatsStore
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.questions.reconcile_answers import AnswerFindings, reconcile_answers
from analytics.questions.stats_reconciler import StatsReconciler
from rules.days import stamp
from rules.lake.entities import Entity, row_of
from rules.lake.pseudonyms import pseudonym
from rules.questions.answer_stats import fold_responses
from rules.questions.lake_entities import ANSWER_STATS, RESPONSES
from rules.questions.questions import QuestionType
from rules.questions.responses import Response, to_item
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.lake_corruptions import spoil
from tests.support.questions.answer_stream import (
    NOW,
    a_person,
    answered,
    deliver,
    live,
    some,
    somebody,
    store,
    stored,
)
from tests.support.questions.stack import prepared
from tests.support.raw_lake import ARRIVED

LATER = datetime.now(UTC) + timedelta(days=30)  # the processor writes stats by the clock


@pytest.fixture(autouse=True)
def settings(engine: Engine) -> Iterator[None]:
    """Nobody else has answered: the lakes of these tests have no others."""
    with prepared(engine):
        for table, key in (
            ("UserStats", ("fingerprint_hash",)),
            ("Responses", ("question_id", "response_id")),
        ):
            for each in scan_all(client("dynamodb"), TableName=table):
                client("dynamodb").delete_item(TableName=table, Key={name: each[name] for name in key})
        yield


@dataclass
class Answerers:
    """A lake, and the nights that look at it."""

    objects: FolderObjects
    now: datetime = LATER

    def publish(self, responses: list[Response]) -> None:
        """Bring responses into the lake, as the publisher and curation do."""
        self._publish(RESPONSES, [encode_item(to_item(each)) for each in responses])

    def publish_stats(self, *people: str) -> None:
        """Bring these people's stats, as they are now, into the lake."""
        self._publish(ANSWER_STATS, [encode_item(stored(each)) for each in people])

    def _publish(self, entity: Entity, items: list[Item]) -> None:
        lines: dict[tuple[str, str], list[str]] = {}
        for each in items:
            row = row_of(entity, decode_item(each), NOW)
            lines.setdefault((row["dt"], row["hour"]), []).append(json.dumps(row))
        for (dt, hour), texts in lines.items():
            key = f"raw/{entity.name}/arrived={ARRIVED}/dt={dt}/hour={hour}/{abs(hash(tuple(texts)))}"
            self.objects.put(key, "\n".join(texts).encode())
            curate(self.objects, Partition(entity.name, dt, hour))

    def night(self, repair: bool = True, **more: Any) -> AnswerFindings:
        self.now += timedelta(days=1)
        dynamodb = client("dynamodb")
        stats, responses = UserStatsStore(dynamodb, "UserStats", 2), ResponseStore(dynamodb, "Responses")
        return reconcile_answers(self.objects, StatsReconciler(stats, responses, repair), self.now, **more)


@pytest.fixture
def world(tmp_path: Path) -> Answerers:
    return Answerers(FolderObjects(tmp_path / "lake"))


def a_history(world: Answerers, count: int = 6) -> tuple[str, list[Response]]:
    """Somebody whose answers are stored, counted, and in the lake."""
    ((person, history),) = histories(world, 1, count).items()
    return person, history


def histories(world: Answerers, people: int, count: int = 6) -> dict[str, list[Response]]:
    """As many whose answers are stored, counted, and in the lake."""
    by_person = {person: some(person, count) for person in (somebody() for _ in range(people))}
    for history in by_person.values():
        assert deliver(store(history)) == []
    world.publish([each for history in by_person.values() for each in history])
    return by_person


def change(person: str, **attributes: Any) -> None:
    """Change stats by hand, without a new version."""
    whole = stored(person) | attributes
    client("dynamodb").put_item(TableName="UserStats", Item=encode_item(whole))


def lose(person: str) -> None:
    client("dynamodb").delete_item(TableName="UserStats", Key=encode_item({"fingerprint_hash": person}))


def move(person: str, to: str) -> None:
    """Put the mark of stats that have moved in place of stats."""
    marked = {"fingerprint_hash": person, "moved_to": to, "version": 2, "updated_at": stamp(NOW)}
    client("dynamodb").put_item(TableName="UserStats", Item=encode_item(marked))


DRIFT: dict[str, Callable[[str], None]] = {
    "points raised": lambda person: change(person, total_points=9999),
    "points of settled dates raised": lambda person: change(
        person, settled="500:5000:739767:1:1:1", total_points=5150
    ),
    "another number of answers": lambda person: change(person, answers_by_category={"c1": 7}),
    "a badge": lambda person: change(person, badges=["regular"]),
    "unreadable": lambda person: change(person, days="nonsense"),
    "a version that is none": lambda person: change(person, version="many", total_points=1),
    "a version of another type": lambda person: change(person, version=["1"]),
    "a version that no writer can raise": lambda person: change(person, version=10**37),
    "written in no time": lambda person: change(person, updated_at="x"),
    "written in the far future": lambda person: change(person, updated_at="2999-01-01T00:00:00.000000Z"),
    "moved, beside the stats": lambda person: change(person, moved_to=somebody()),
    "moved to nobody": lambda person: move(person, somebody()),
    "moved in a circle": lambda person: move(person, person),
    "off the board": lambda person: change(person, _leaderboard="_leaderboard#7"),
    "lost": lose,
}


def test_drift_is_named_and_repaired(world: Answerers) -> None:
    """Of each kind one person has some, all in the same night."""
    (other, _), by_person = a_history(world), histories(world, len(DRIFT))
    right = {person: stored(person) for person in by_person}
    world.publish_stats(*by_person)
    assert world.night().different == []
    for drift, person in zip(DRIFT.values(), by_person, strict=True):
        drift(person)
    people = sorted(by_person)
    named = world.night(repair=False, everybody=True)
    assert (sorted(named.different), sorted(named.unrepaired)) == (people, people)
    found = world.night(everybody=True)
    assert (sorted(found.different), found.unrepaired, found.disagreements) == (people, [], [])
    assert {each.table for each in found.differences} == {"UserStats"}, "the lake is right"
    for kind, (person, history) in zip(DRIFT, by_person.items(), strict=True):
        kept, before = stored(person), right[person]
        assert live(person) == fold_responses(history), kind
        assert {name: kept[name] for name in before if name not in ("version", "updated_at")} == {
            name: before[name] for name in before if name not in ("version", "updated_at")
        }, kind
        assert type(kept["version"]) is int, kind
        assert kept["version"] > before["version"], (
            f"{kind}: a version that was in the lake never comes again"
        )
        assert kept["updated_at"] == stamp(world.now), kind
    assert live(other).total_answers == 6
    assert world.night(everybody=True).different == []


def test_what_shows_or_counts_otherwise_is_found_the_next_night(world: Answerers) -> None:
    """Also without looking at everybody; what only all responses can tell is found within four weeks."""
    people = [*histories(world, 4)]
    world.night()
    assert world.night().looked_at <= 2, "those whose turn it is"
    DRIFT["points raised"](people[0])
    DRIFT["lost"](people[1])
    found = world.night()
    assert sorted(found.different) == sorted(people[:2])
    assert not found.unrepaired
    hidden = people[2]
    change(hidden, newest_at=stored(hidden)["created_at"])  # agrees with itself, and is wrong
    step = effort(7, soak=1)  # a night makes good those before it that were left out
    for _ in range(0, 28, step):
        world.now += timedelta(days=step - 1)
        if hidden in world.night().different:
            break
    else:
        raise AssertionError(hidden)


def test_a_night_over_named_dates_leaves_the_changes_to_the_next_night(world: Answerers) -> None:
    """The lake may lack the answers of other dates."""
    world.publish_stats(a_history(world)[0])
    world.now = datetime.now(UTC) - timedelta(days=1, hours=1)
    world.night()
    person = somebody()
    history = some(person, 6)
    assert deliver(store(history)) == []
    change(person, newest_at=stored(person)["created_at"])
    assert world.night(has_named_dates=True).unrepaired == [person]
    world.publish(history)
    world.publish_stats(person)
    found = world.night()
    assert (found.different, found.unrepaired) == ([person], [])


def tampered(history: list[Response], **attributes: Any) -> None:
    """Change a stored response by hand."""
    whole = decode_item(
        client("dynamodb").get_item(
            TableName="Responses",
            Key=encode_item(
                {"question_id": history[0].question_id, "response_id": history[0].fingerprint_hash}
            ),
        )["Item"]
    )
    client("dynamodb").put_item(TableName="Responses", Item=encode_item(whole | attributes))


def test_where_table_and_lake_contradict_each_other_nothing_is_repaired(world: Answerers) -> None:
    person, history = a_history(world)
    world.night()
    tampered(history, points=140)
    change(person, total_points=9999)
    before = stored(person)
    found = world.night()
    assert found.disagreements == [(person, "answers differ in the lake")]
    assert (found.different, found.unrepaired) == ([person], [person])
    assert stored(person) == before


# What the lake has no copy of, by what else tells that it was changed.
UNPUBLISHED: dict[str, tuple[dict[str, Any], str]] = {
    "with a name on it": ({"user_id": "mallory"}, "user_id is not as it was written"),
    "another zone": ({"zone": "Asia/Tokyo"}, "zone is not as it was written"),
    "one that named another zone": ({"timezone": "Asia/Tokyo"}, "zone is not as it was written"),
    "a number as text": ({"number": "1"}, "an answer cannot be read"),
    "with an attribute of nobody's": ({"colour": "red"}, "colour is not as it was written"),
}


def test_a_response_that_contradicts_itself_or_the_person_s_others_is_told(world: Answerers) -> None:
    by_person = histories(world, len(UNPUBLISHED), count=3)
    other, _ = a_history(world)
    assert world.night(everybody=True).disagreements == []
    before = {}
    for (changes, _), (person, history) in zip(UNPUBLISHED.values(), by_person.items(), strict=True):
        tampered(history, **changes)
        change(person, total_points=9999)
        before[person] = stored(person)
    found = world.night(everybody=True)
    reasons = dict(found.disagreements)
    assert sorted(person for person, _ in found.disagreements) == sorted(by_person)
    for (_, why), person in zip(UNPUBLISHED.values(), by_person, strict=True):
        assert why in reasons[person]
        assert stored(person) == before[person], "nothing is repaired by an answer that is in doubt"
    assert other not in found.different


def test_a_response_whose_words_have_left_is_as_it_was_written(world: Answerers) -> None:
    person = somebody()
    texts = {"type": QuestionType.TEXT, "selected_option": None, "answer": "words"}
    history = [*some(person, 2), *some(person, 1, **texts)]
    assert deliver(store(history)) == []
    world.publish(history)
    tampered(history[2:], answer=None, answer_characters=5)
    found = world.night(everybody=True)
    assert (found.disagreements, found.different) == ([], [])


def test_an_answer_that_one_of_them_lacks(world: Answerers) -> None:
    person, history = a_history(world)
    extra = some(person, 1, created_at=history[-1].created_at)
    world.publish(extra)
    found = world.night()
    assert found.disagreements == [(person, "the lake has 1 answers that the table lacks")]
    unpublished = somebody()
    late = some(unpublished, 3)
    assert deliver(store(late)) == []
    change(unpublished, total_points=9999)
    found = world.night()
    assert (unpublished, "the lake lacks 3 answers") in found.disagreements
    assert unpublished in found.unrepaired
    assert stored(unpublished)["total_points"] == 9999


@pytest.mark.parametrize(
    ("in_lake", "missing"),
    [
        ((0, 1), 0),
        ((0, 1, 3), 0),  # a young answer has overtaken another one
        ((0, 3), 1),  # it has overtaken one that is late
        ((0, 2, 3), 1),
        ((2, 3), 2),
        ((1, 2, 3), 1),
    ],
)
def test_an_answer_is_late_whatever_younger_ones_have_overtaken_it(
    world: Answerers, in_lake: tuple[int, ...], missing: int
) -> None:
    person = somebody()
    history = some(person, 4)  # an hour apart, and two are younger than the lake's lag
    assert deliver(store(history)) == []
    world.publish([history[place] for place in in_lake])
    world.now = NOW + timedelta(hours=3, minutes=30, days=-1)
    told = [(person, f"the lake lacks {missing} answers")] if missing else []
    assert world.night(repair=False, everybody=True).disagreements == told


def test_an_answer_that_is_lost_is_told_each_night_whatever_answers_come_later(world: Answerers) -> None:
    person = somebody()
    lost = some(person, 1)
    assert deliver(store(lost)) == []
    world.now = NOW + timedelta(minutes=30)
    for night in range(1, 4):
        later = [stamp(NOW + timedelta(days=night, minutes=minutes)) for minutes in (-90, -30, 0)]
        answers = [each for at in later for each in some(person, 1, created_at=at)]
        assert deliver(store(answers)) == []
        world.publish(answers)
        told = world.night(repair=False, everybody=True).disagreements
        assert told == [(person, "the lake lacks 1 answers")]


def test_answers_that_wait_to_be_counted_are_told_and_no_drift(world: Answerers) -> None:
    person = somebody()
    history = some(person, 4)
    batch = store(history)
    world.publish(history)
    found = world.night()
    assert (found.uncounted, found.different) == ([person], [])
    assert deliver(batch) == []
    assert world.night().uncounted == []


def test_stats_that_have_moved_are_repaired_with_all_answers(world: Answerers) -> None:
    hashes = a_person(3)
    history = [each for place in (2, 1, 0) for each in answered(hashes, place, 4)]
    for each in history:
        assert deliver(store([each])) == []
    world.publish(history)
    assert world.night().different == []
    change(hashes[0], older_hashes=[hashes[1]])
    assert world.night().different == [hashes[0]]
    assert stored(hashes[0])["older_hashes"] == sorted(hashes[1:])
    lose(hashes[0])
    found = world.night()
    assert (found.different, found.unrepaired) == ([hashes[0]], [])
    assert live(hashes[0]) == fold_responses(history)
    assert stored(hashes[0])["older_hashes"] == sorted(hashes[1:])


def test_nobody_gets_the_stats_of_a_stranger(world: Answerers) -> None:
    """Stats that are marked as moved to somebody, or copied from somebody, whose answers do not say so."""
    person, history = a_history(world, 5)
    other, _ = a_history(world, 7)
    right = stored(other)
    move(person, other)
    found = world.night()
    assert (found.different, found.unrepaired, found.disagreements) == ([person], [], [])
    assert (live(person), stored(other)) == (fold_responses(history), right)
    hashes = a_person(2)
    rotated = [each for place in (1, 0) for each in answered(hashes, place, 4)]
    for each in rotated:
        assert deliver(store([each])) == []
    world.publish(rotated)
    copied = stored(hashes[0]) | {"fingerprint_hash": person}
    client("dynamodb").put_item(TableName="UserStats", Item=encode_item(copied))
    found = world.night()
    assert (found.different, found.unrepaired, found.disagreements) == ([person], [], [])
    assert (live(person), live(hashes[0])) == (fold_responses(history), fold_responses(rotated))
    assert "older_hashes" not in stored(person)
    assert stored(hashes[0])["older_hashes"] == [hashes[1]]
    assert world.night(everybody=True).different == []


HAND_VERSIONS: dict[str, tuple[int, bool]] = {
    "raised, and published": (5000, True),
    "raised past the stream": (5000, False),
    "set back, and published": (1, True),
    "set back past the stream": (1, False),
}


def test_a_version_that_was_changed_alone_is_named_and_written_anew(world: Answerers) -> None:
    """A version is nobody's but the lake's rows': each write makes one row, and none of another version."""
    by_person, (other, _) = histories(world, len(HAND_VERSIONS)), a_history(world)
    people = sorted(by_person)
    for each in (*people, other):
        change(each, version=7)
    world.publish_stats(*people, other)
    assert world.night(everybody=True).differences == []
    for person, (version, _) in zip(by_person, HAND_VERSIONS.values(), strict=True):
        change(person, version=version)
    published = [
        person
        for person, (_, is_published) in zip(by_person, HAND_VERSIONS.values(), strict=True)
        if is_published
    ]
    world.publish_stats(*published)
    assert sorted(world.night(repair=False, everybody=True).different) == people
    found = world.night(everybody=True)
    assert (sorted(found.different), found.unrepaired) == (people, [])
    for (kind, (version, _)), (person, history) in zip(HAND_VERSIONS.items(), by_person.items(), strict=True):
        assert live(person) == fold_responses(history), kind
        assert stored(person)["version"] > max(7, version), kind
    world.publish_stats(*people)
    assert world.night(everybody=True).different == []


def test_stats_whose_row_the_lake_lost_are_published_anew(world: Answerers) -> None:
    """Within the day that Firehose has, they are in flight."""
    world.night()
    (person, _), (other, _) = a_history(world), a_history(world)
    for each in (person, other):
        change(each, updated_at=stamp(world.now))
    world.publish_stats(other)
    assert world.night().different == []
    found = world.night()
    assert (found.different, found.unrepaired) == ([person], [])
    assert "lake.answer_stats" in [each.table for each in found.differences]
    world.publish_stats(person)
    assert world.night().different == []


def test_two_writes_at_one_instant_are_two_versions(world: Answerers) -> None:
    """A batch with more answers than one transaction takes; its first write may be in the lake alone."""
    person = somebody()
    history = some(person, 8)
    assert deliver(store(history)) == []
    world.publish(history)
    newest = stored(person)
    change(person, version=newest["version"] - 1, total_answers=6)
    world.publish_stats(person)
    change(person, **newest)
    change(person, updated_at=stamp(world.now))
    world.publish_stats(person)
    change(person, version=newest["version"] - 1, total_answers=6, updated_at=stamp(world.now))
    world.publish_stats(person)
    change(person, **newest | {"updated_at": stamp(world.now)})
    assert world.night(everybody=True).different == []


def test_a_row_of_stats_that_was_changed_in_the_lake_is_named(world: Answerers) -> None:
    """Each column of another person's row; some have no value."""
    columns = [(each.name, False) for each in ANSWER_STATS.fields if each.name != "person"]
    columns += [(name, True) for name in ("version", "updated_at", "total_points")]
    by_person, (other, _) = histories(world, len(columns), 2), a_history(world)
    world.publish_stats(*by_person, other)
    assert world.night(everybody=True).different == []
    for (column, is_emptied), person in zip(columns, by_person, strict=True):
        spoil(world.objects, "answer_stats", column, is_row_of(person), is_emptied=is_emptied)
    found = world.night(everybody=True)
    assert (sorted(found.different), found.unrepaired) == (sorted(by_person), [])
    for person, history in by_person.items():
        assert live(person) == fold_responses(history)
    world.publish_stats(*by_person)
    assert world.night(everybody=True).different == []


def is_row_of(person: str) -> Callable[[Any], bool]:
    name = pseudonym(person)
    return lambda row: bool(row["person"] == name)


def test_a_row_of_stats_of_whom_the_table_does_not_know_is_told(world: Answerers) -> None:
    person, _ = a_history(world)
    world.publish_stats(person)
    assert world.night(everybody=True).disagreements == []
    name = pseudonym(person)
    for is_emptied, other in ((False, f"{name}x"), (True, "")):
        spoil(world.objects, "answer_stats", "person", lambda _: True, is_emptied=is_emptied)
        told = [(other, "the table lacks the stats that the lake has")]
        assert world.night(everybody=True).disagreements == told


def test_people_of_whom_the_table_does_not_know_are_told_by_name(world: Answerers) -> None:
    people = [a_history(world)[0] for _ in range(6)]
    world.publish_stats(*people)
    for person in people:
        spoil(world.objects, "answer_stats", "person", is_row_of(person))
    told = [name for name, _ in world.night(everybody=True).disagreements]
    assert told == sorted(f"{pseudonym(person)}x" for person in people)


def test_whoever_changes_stats_meanwhile_wins(world: Answerers, monkeypatch: pytest.MonkeyPatch) -> None:
    person, _ = a_history(world)
    change(person, total_points=9999)
    real = UserStatsStore.put_in_place

    def late(self: UserStatsStore, new: Any, read: Any) -> bool:
        change(person, version=stored(person)["version"] + 1)
        return real(self, new, read)

    monkeypatch.setattr(UserStatsStore, "put_in_place", late)
    found = world.night()
    assert (found.contended, found.different) == ([person], [])
    assert stored(person)["total_points"] == 9999
    monkeypatch.undo()
    assert world.night().different == [person]


def test_a_night_reads_only_later_partitions_once_older_ones_are_settled(world: Answerers) -> None:
    person, history = a_history(world)
    world.night()
    counting = Counting(world.objects)
    again = Answerers(counting, world.now)  # type: ignore[arg-type]
    assert again.night().different == []
    assert not [each for each in counting.read if each.startswith("curated/")]
    world.publish(some(person, 1, created_at=history[0].created_at))
    assert world.night().disagreements == [(person, "the lake has 1 answers that the table lacks")]


def test_a_person_of_whom_the_table_has_nothing_is_told(world: Answerers) -> None:
    stranger = somebody()
    world.publish(some(stranger, 2))
    found = world.night()
    assert found.disagreements == [(pseudonym(stranger), "the table lacks all answers that the lake has")]


class Counting:
    """A folder of objects that notes what is read."""

    def __init__(self, real: FolderObjects) -> None:
        self._real, self.read = real, list[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in ("get", "open", "open_input", "input_file"):
            return found

        def noted(key: Any, *more: Any, **named: Any) -> Any:
            self.read.append(getattr(key, "key", key))
            return found(key, *more, **named)

        return noted
