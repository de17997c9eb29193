"""Shows on a terminal how far long work is: a count and the time; elsewhere, a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SAY_EVERY_SECONDS = 8.0


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show `what`, with the time that has passed, until the block ends. The block gets a function to which it
    tells, as often as it likes, how far it is; "" if it has come nowhere yet.
    """
    began = said = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=None)
            yield lambda text: progress.update(task, description=f"{what}: {text}" if text else what)
    else:
        print(f"{what} ...", file=sys.stderr, flush=True)

        def tell(text: str) -> None:
            nonlocal said
            if time.monotonic() - said >= SAY_EVERY_SECONDS:
                said = time.monotonic()
                far = f", {text}" if text else ""
                print(f"  {what}: {said - began:.0f} s{far}", file=sys.stderr, flush=True)

        yield tell
    print(f"{what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def progress_bar(total: int, what: str) -> Callable[[int], None]:
    """Return a function that is called with how many more are done; on a terminal it draws a bar."""
    if not sys.stderr.isatty():
        return _lines(total, what)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    progress = Progress(*columns, console=Console(stderr=True))
    task, done = progress.add_task(what, total=total), 0
    progress.start()

    def more(number: int) -> None:
        nonlocal done
        done += number
        progress.update(task, completed=done)
        if done >= total:
            progress.stop()

    return more


def _lines(total: int, what: str) -> Callable[[int], None]:
    """Return a function that is called with how many more are done, and prints a line now and then."""
    done, said = 0, time.monotonic()

    def more(number: int) -> None:
        nonlocal done, said
        done += number
        if time.monotonic() - said >= SAY_EVERY_SECONDS:
            said = time.monotonic()
            print(f"  {what.strip()}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return more
