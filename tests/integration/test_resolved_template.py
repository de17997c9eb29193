"""The template, resolved for every set of parameters that decides something, has no fault.

It takes a minute of CPU, so it is not in the gate; half of that where no template has changed since it was last
linted. `make soak` forgets what was linted before. By hand: python -m infra.lint.
"""

from pathlib import Path

from infra.lint.resolved import TEMPLATE
from infra.lint.run import run
from infra.lint.variants import MEMORY
from tests.support.effort import SOAK


def test_what_cloudformation_and_iam_would_refuse_is_not_there(tmp_path: Path) -> None:
    lines, sets = run(TEMPLATE, tmp_path / "found.json" if SOAK else MEMORY)
    assert lines == []
    assert 50 < sets < 200, (
        "fewer leave cases out; many more take minutes of CPU: which parameter has so many values?"
    )
