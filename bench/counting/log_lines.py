"""Holds what a function logs, so that its bytes can be counted."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def logged(module: Any) -> Iterator[io.StringIO]:
    """Hold what a handler's module logs, at the level that functions have in the template.

    The routes of the HTTP API have their logger in `app`.
    """
    logger = module.app.logger if hasattr(module, "app") else module.logger
    (handler,), level, lines = logger.handlers, logger._logger.level, io.StringIO()
    stream = handler.setStream(lines)
    logger.setLevel("INFO")
    try:
        yield lines
    finally:
        handler.setStream(stream)
        logger.setLevel(level)
