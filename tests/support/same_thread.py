"""A pool that runs each call in the thread that asks for it, so that a seed replays exactly."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self


class SameThread:
    """Takes the place of ThreadPoolExecutor."""

    def __init__(self, _threads: int) -> None:
        """Nothing is started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to wait for."""

    def map(self, call: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        return map(call, values)
