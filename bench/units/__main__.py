"""`python -m bench.units`: measures the units of all paths, writes local/plan/units.json, prints changes.

And write units an event against the usual design. --check writes nothing, and fails if the file differs.
"""

import json
import sys

from bench.units.budget import OF_NAIVE, differences, measured, message, of_naive, text_of
from local.plan.measured_units import UNITS


def main(arguments: list[str]) -> int:
    """Measure, then write or check; returns the exit status."""
    found = measured()
    changed = differences(json.loads(UNITS.read_text()), found)
    if "--check" in arguments:
        print(message(changed) if changed else "no path's units have changed")
    else:
        UNITS.write_text(text_of(found), encoding="utf-8")
        print("\n".join(changed))
    for size, (ours, naive) in of_naive(found["paths"]).items():
        ratio = f"{ours / naive:.3f} (budget {OF_NAIVE[size]:g})"
        print(f"write units, {size:2} events of a user's next date: {ours:.2f} of {naive:.2f}, {ratio}")
    return bool(changed) if "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
