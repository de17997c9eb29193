"""Holds what a function logs, so that its bytes can be counted."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def logged(logger: Any) -> Iterator[io.StringIO]:
    """Hold what a Powertools logger writes, at the level that functions have in the template."""
    (handler,), level, lines = logger.handlers, logger._logger.level, io.StringIO()
    stream = handler.setStream(lines)
    logger.setLevel("INFO")
    try:
        yield lines
    finally:
        handler.setStream(stream)
        logger.setLevel(level)
