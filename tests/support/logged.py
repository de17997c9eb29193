"""All lines that handlers log, whatever other tests have silenced."""

import io
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def logged_lines() -> Iterator[io.StringIO]:
    """Yield what every logger of the handlers that have been imported writes from now on."""
    lines = io.StringIO()
    with ExitStack() as before:
        for each in [*logging.root.manager.loggerDict.values()]:
            if isinstance(each, logging.Logger) and (handler := getattr(each, "powertools_handler", None)):
                before.callback(each.setLevel, each.level)
                before.callback(handler.setStream, handler.stream)
                each.setLevel(logging.INFO)
                handler.setStream(lines)
        yield lines
