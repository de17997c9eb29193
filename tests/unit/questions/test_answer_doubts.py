"""Whether responses and their copies in the lake are the same, by a digest that SQL computes as well."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adapters.platform.items import decode_item, encode_item
from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.questions.answer_totals import answer_totals
from rules.days import stamp
from rules.engagement.reconciliation import LAKE_LAG, LAKE_LOST, Doubt
from rules.lake.entities import row_of
from rules.lake.pseudonyms import pseudonym
from rules.questions.answer_doubts import LakeAnswers, digest_of, doubt_of
from rules.questions.lake_entities import RESPONSES
from rules.questions.questions import QuestionType
from rules.questions.responses import Response, to_item
from tests.support.examples import examples
from tests.support.questions.answers import NOON
from tests.support.raw_lake import ARRIVED

NOW = NOON + timedelta(days=3)
SMALL = st.integers(0, 3)


@st.composite
def responses(draw: st.DrawFn, number: int = 0) -> Response:
    created = NOW - draw(st.sampled_from([timedelta(minutes=5), LAKE_LAG * 2, LAKE_LOST * 2]))
    created += timedelta(microseconds=draw(st.integers(0, 5)) * 100_001)
    text = draw(st.none() | st.text("aé😀", min_size=1, max_size=3))
    return Response(
        question_id=f"q{number}",
        fingerprint_hash=draw(st.sampled_from(["a" * 32, "b" * 32])),
        agent_id=draw(st.sampled_from(["agent", "smoke-signals", "größe's"])),
        type=draw(st.sampled_from(QuestionType)),
        category="general",
        number=1 + draw(SMALL),
        points=draw(SMALL),
        created_at=stamp(created),
        activity_date=created.date(),
        zone="UTC",
        is_signed_in=draw(st.booleans()),
        selected_option=None if text else draw(SMALL),
        answer=text,
        confidence=draw(st.none() | SMALL),
        response_time_ms=draw(st.none() | SMALL),
        day_points_max=draw(SMALL),
    )


HISTORIES = (
    st.integers(0, 6).flatmap(lambda count: st.tuples(*(responses(each) for each in range(count)))).map(list)
)


def is_due(response: Response, now: datetime = NOW) -> bool:
    return response.created_at < stamp(now - LAKE_LAG)


def copied(history: list[Response]) -> LakeAnswers:
    due = [each for each in history if is_due(each)]
    return LakeAnswers(len(due), digest_of(due))


@settings(max_examples=examples(8), deadline=None)
@given(HISTORIES)
def test_the_lake_s_figures_are_those_of_the_published_rows(history: list[Response]) -> None:
    lines: dict[tuple[str, str], list[str]] = {}
    for each in history:
        row = row_of(RESPONSES, decode_item(encode_item(to_item(each))), NOW)
        lines.setdefault((row["dt"], row["hour"]), []).append(json.dumps(row))
    with TemporaryDirectory() as folder:
        objects = FolderObjects(Path(folder))
        for (dt, hour), texts in lines.items():
            objects.put(
                f"raw/responses/arrived={ARRIVED}/dt={dt}/hour={hour}/part", "\n".join(texts).encode()
            )
            curate(objects, Partition("responses", dt, hour))
        for now in (NOW, NOW + timedelta(days=4), NOW + timedelta(days=30)):  # part of it settled, then all
            found = answer_totals(objects, now).to_pylist()
            due = [each for each in history if is_due(each, now)]
            assert {row["person"]: (row["answers"], row["digest"]) for row in found} == {
                pseudonym(person): (len(mine), digest_of(mine))
                for person in {each.fingerprint_hash for each in due}
                if (mine := [each for each in due if each.fingerprint_hash == person])
            }


@given(HISTORIES, st.data())
def test_what_is_the_same_is_in_no_doubt(history: list[Response], data: st.DataObject) -> None:
    assert doubt_of(data.draw(st.permutations(history)), copied(history), NOW) == (Doubt.NONE, "")
    arrived = [each for each in history if is_due(each) or data.draw(st.booleans())]
    assert doubt_of(history, copied(arrived), NOW)[0] is Doubt.NONE


@given(HISTORIES.filter(bool), st.data())
def test_what_is_not_the_same_is_in_doubt(history: list[Response], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(history) - 1))
    gone = history[place]
    less = [*history[:place], *history[place + 1 :]]
    assume(is_due(gone))
    assert doubt_of(less, copied(history), NOW)[0] is Doubt.CONTRADICTED
    assert doubt_of(history, copied(less), NOW)[0] in (Doubt.LATE, Doubt.LACKING)
    other = data.draw(responses(place).filter(lambda each: digest_of([each]) != digest_of([gone])))
    changed = [*history[:place], other, *history[place + 1 :]]
    # Without the old answer there is one too few: the young one in its place does not count yet.
    assert doubt_of(changed, copied(history), NOW)[0] is Doubt.CONTRADICTED


@given(HISTORIES, HISTORIES)
def test_figures_of_two_hashes_add_up(some: list[Response], others: list[Response]) -> None:
    assert copied(some).plus(copied(others)) == copied([*some, *others])
