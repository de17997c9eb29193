"""A fault that the lint found, and the fewest parameters with which it occurs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """stack: its path, such as /Network, or a file. place: a logical id or a section. reason: a sentence."""

    stack: str
    place: str
    reason: str

    def __str__(self) -> str:
        """Return one line: /Network Vpc: reason."""
        return f"{self.stack} {self.place}: {self.reason}"


def shrunk(parameters: Mapping[str, str], still: Callable[[Mapping[str, str]], bool]) -> dict[str, str]:
    """Return parameters without those that a fault does not need. still: whether it occurs with fewer."""
    left = dict(parameters)
    for name in parameters:
        fewer = {other: value for other, value in left.items() if other != name}
        left = fewer if still(fewer) else left
    return left


def words(parameters: Mapping[str, str]) -> str:
    """Return parameters as words: A=1 and B=nothing."""
    return (
        " and ".join(f"{name}={value or 'nothing'}" for name, value in parameters.items()) or "the defaults"
    )
