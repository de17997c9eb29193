"""What a whole API in the process needs of questions (tests/support/api_stack.py)."""

from functools import partial

import pytest

from ingest.questions import polls_api
from ingest.questions.polls_api import Polls
from tests.support.gateway import pause


def prepare(patch: pytest.MonkeyPatch) -> None:
    """Let polls wait no longer than the tests' clock says."""
    patch.setattr(polls_api, "Polls", partial(Polls, pause=pause))
