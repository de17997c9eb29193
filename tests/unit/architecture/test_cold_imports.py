"""What a stream's function loads before its first event is no more than it needs (bench/cold_start.py).

Each dataclass costs a fresh process half a millisecond, so what a handler never asks is not to be reached.
"""

import json
import subprocess
import sys

import pytest

from tests.support.module_graph import reached
from tests.support.template import ROOT

NOT_NEEDED = {
    # Events come to it judged: the book that judged them is asked at the doors.
    "processors.engagement": {"rules.book.book", "rules.engagement.points"},
    # It stores events, and knows nothing of what becomes of them.
    "ingest.engagement.events_stream": {
        "rules.engagement.account_state",
        "rules.engagement.ledger",
        "rules.engagement.streak",
        "rules.book.book_schema",
        "ingest.engagement.receipts",
    },
}


@pytest.mark.parametrize(
    ("handler", "other"), [(handler, each) for handler, names in NOT_NEEDED.items() for each in sorted(names)]
)
def test_a_stream_s_function_does_not_reach_what_it_never_asks(handler: str, other: str) -> None:
    assert other in reached(other), "it has another name now: say so here, too"
    assert other not in reached(handler)


@pytest.mark.parametrize("handler", ["processors.engagement", "ingest.engagement.users_api"])
def test_a_cold_start_does_not_look_for_garbage_among_modules(handler: str) -> None:
    counted = "[each['collections'] for each in gc.get_stats()]"
    child = f"import gc, json; before = {counted}; import {handler}; print(json.dumps([before, {counted}]))"
    environment = {"POWERTOOLS_LOG_LEVEL": "INFO"}
    command = [sys.executable, "-c", child]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    before, after = json.loads(done.stdout)
    assert sum(after) - sum(before) <= 2, (
        "the threshold of processors/__init__.py or ingest/__init__.py is gone"
    )
