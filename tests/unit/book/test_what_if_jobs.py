"""Of admins who ask at the same moment one gets the lake, whatever they ask."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from adapters.platform.objects import FolderObjects
from adapters.what_if_jobs import WhatIfJob, WhatIfJobs, WhatIfRunning

CALLERS = 8
AT = "2027-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("questions", [1, 3, CALLERS])
def test_one_of_many_callers_begins(tmp_path: Path, questions: int) -> None:
    jobs, start, woken = WhatIfJobs(FolderObjects(tmp_path)), Barrier(CALLERS), list[str]()

    def ask(number: int) -> str | None:
        job = WhatIfJob({"format": number % questions}, [None, None], AT)
        start.wait()
        try:
            return jobs.ask(job, woken.append).job_id
        except WhatIfRunning:
            return None

    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(ask, range(CALLERS)))
    (begun,) = woken
    assert {*answers} - {None} == {begun}
    assert answers.count(begun) == (CALLERS + questions - 1 - answers.index(begun)) // questions


@pytest.mark.parametrize("span", [[None, None], ["2027-01-01", None], [None, "2027-01-01"]])
def test_a_question_is_named_by_its_book_and_its_days(span: list[str | None]) -> None:
    first = WhatIfJob({"a": 1, "b": [1, 2]}, span, AT)
    assert first.job_id == WhatIfJob({"b": [1, 2], "a": 1}, span, "2027-01-02T00:00:00.000000Z").job_id
    others = [
        ({"a": 1, "b": [2, 1]}, span),
        ({"a": True, "b": [1, 2]}, span),
        (first.document, [*span, None]),
    ]
    assert first.job_id not in {WhatIfJob(document, days, AT).job_id for document, days in others}
