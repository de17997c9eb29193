"""`python -m bench.units`: measures the units of all paths, writes local/plan/units.json, prints changes.

It also prints write units an event against the usual design. --check writes nothing, and fails if the file
differs.
"""

import json
import sys

from bench.units.budget import (
    NAIVE_BUDGETS,
    differences,
    json_text,
    measure_all,
    message,
    write_units_of_both,
)
from local.plan.cost import UNITS


def main(arguments: list[str]) -> int:
    """Measure, then write or check; returns the exit status."""
    is_check = "--check" in arguments
    measured = measure_all()
    changes = differences(json.loads(UNITS.read_text()), measured)
    if is_check:
        print(message(changes) if changes else "no path's units have changed")
    else:
        UNITS.write_text(json_text(measured), encoding="utf-8")
        print("\n".join(changes))
    for count, (ours, naive) in write_units_of_both(measured["paths"]).items():
        ratio = f"{ours / naive:.3f} (budget {NAIVE_BUDGETS[count]:g})"
        print(f"write units, {count:2} events of a user's next date: {ours:.2f} of {naive:.2f}, {ratio}")
    return int(is_check and bool(changes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
