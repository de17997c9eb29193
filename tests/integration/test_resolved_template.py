"""The template, resolved for every set of parameters that decides something, has no fault.

It takes one to two minutes of CPU, so it is not in the gate. By hand: python -m infra.lint.
"""

from pathlib import Path

from infra.lint.resolved import TEMPLATE
from infra.lint.run import run


def test_what_cloudformation_and_iam_would_refuse_is_not_there(tmp_path: Path) -> None:
    lines, sets = run(TEMPLATE, tmp_path / "found.json")
    assert lines == []
    assert 50 < sets < 200, (
        "fewer leave cases out; many more take minutes of CPU: which parameter has so many values?"
    )
