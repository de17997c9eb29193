"""A fault that the lint found, and the words that say with which parameters it occurs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Feature = tuple[str, str]
ALTERNATIVES_MAX = 3


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """stack: its path, such as /Network, or a file. place: a logical id or a section. reason: a sentence."""

    stack: str
    place: str
    reason: str

    def __str__(self) -> str:
        """Return one line: /Network Vpc: reason."""
        return f"{self.stack} {self.place}: {self.reason}"


class Sets:
    """Sets of parameters, of which it can tell what some have in common and no other has."""

    def __init__(self, overrides: Sequence[Mapping[str, str]], defaults: Mapping[str, str]) -> None:
        self._overrides = overrides
        self._defaults = set(defaults.items())
        self._masks: dict[Feature, int] = {}
        for number, each in enumerate(overrides):
            for feature in {**defaults, **each}.items():
                self._masks[feature] = self._masks.get(feature, 0) | 1 << number
        self._all = (1 << len(overrides)) - 1

    def where(self, numbers: Iterable[int]) -> str:
        """Return what tells the sets with these numbers from all others, or the smallest of them."""
        target = sum(1 << number for number in set(numbers))
        if target == self._all:
            return "with any parameters"
        if target == 1:
            return "with the defaults"
        alternatives = self._alternatives(target)
        if alternatives:
            return ", or ".join("with " + words(dict(each)) for each in alternatives)
        return "for instance with " + words(min((self._overrides[each] for each in set(numbers)), key=len))

    def _alternatives(self, target: int) -> list[tuple[Feature, ...]]:
        within = {each: mask for each, mask in self._masks.items() if mask & target and mask != self._all}
        for feature, mask in within.items():
            if mask == target:
                return [(feature,)]
        common = [each for each, mask in within.items() if mask & target == target]
        if self._mask(common) == target:
            return [self._needed(common, target)]
        choices = [(each,) for each in within] + list(combinations(within, 2))
        return self._cover(
            target, {each: mask for each in choices if not (mask := self._mask(each)) & ~target}
        )

    def _needed(self, features: list[Feature], target: int) -> tuple[Feature, ...]:
        """Drop what explains nothing, the defaults first."""
        left = features
        for each in sorted(features, key=lambda feature: feature not in self._defaults):
            fewer = [other for other in left if other != each]
            left = fewer if self._mask(fewer) == target else left
        return tuple(left)

    def _cover(self, target: int, masks: Mapping[tuple[Feature, ...], int]) -> list[tuple[Feature, ...]]:
        found: list[tuple[Feature, ...]] = []
        left = target
        while left and masks and len(found) < ALTERNATIVES_MAX:
            best = max(masks, key=lambda each: ((masks[each] & left).bit_count(), -len(each)))
            found.append(best)
            left &= ~masks[best]
        return [] if left else found

    def _mask(self, features: Iterable[Feature]) -> int:
        mask = self._all
        for each in features:
            mask &= self._masks[each]
        return mask


def words(parameters: Mapping[str, str]) -> str:
    """Return parameters as words: A=1 and B=nothing."""
    return (
        " and ".join(f"{name}={value or 'nothing'}" for name, value in parameters.items()) or "the defaults"
    )
