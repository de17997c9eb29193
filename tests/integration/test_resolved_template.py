"""The template, resolved for every set of parameters that decides something, has no fault.

It takes most of a minute of CPU, so it is not in the gate; a fifth of that where no template has changed since it
was last linted. All pairs of values occur, in `make soak` all triples, and that forgets what was linted before. By
hand, with triples: python -m infra.lint.
"""

from pathlib import Path

from infra.lint.resolved import TEMPLATE
from infra.lint.run import run
from infra.lint.variants import MEMORY
from tests.support.effort import SOAK, effort


def test_what_cloudformation_and_iam_would_refuse_is_not_there(tmp_path: Path) -> None:
    memory = tmp_path / "found.json" if SOAK else MEMORY
    lines, sets = run(TEMPLATE, memory, strength=effort(2, soak=3))
    assert lines == []
    assert 30 < sets < 200, (
        "fewer leave cases out; many more take minutes of CPU: which parameter has so many values?"
    )
