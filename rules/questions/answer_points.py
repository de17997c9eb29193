"""Points of an answer (rule 5): from these tables alone, fixed when the answer is stored.

The points of a person and date add up to min(daily cap, sum of the answers' points), in any order of
arrival.
"""

from types import MappingProxyType

BASE = 10
DAILY_POINTS_MAX = 150
BONUSES = MappingProxyType({"confidence": 3, "timing": 2})
# Milliseconds. A faster answer was given without reading, a slower one was left lying: no timing bonus.
TIMING_MS_MIN, TIMING_MS_MAX = 1_000, 600_000


def points_for(confidence: int | None, response_time_ms: int | None) -> dict[str, int]:
    """Return what an answer earns before the daily cap, by reason. Example: {"answer": 10, "timing": 2}."""
    earned = {"answer": BASE}
    if confidence is not None:
        earned["confidence"] = BONUSES["confidence"]
    if response_time_ms is not None and TIMING_MS_MIN <= response_time_ms <= TIMING_MS_MAX:
        earned["timing"] = BONUSES["timing"]
    return earned
