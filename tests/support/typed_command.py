"""A command of `streakline` in this process, on a stack of the test: another process would import everything again."""

from typing import Any
from unittest.mock import patch

from local import cli


def typed(stack: Any, *words: str) -> None:
    """Run a command; raises what it raises."""
    with patch("local.command.find_stack", lambda *_: stack):
        cli.root.main(words, "streakline", standalone_mode=False)
