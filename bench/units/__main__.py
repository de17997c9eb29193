"""`python -m bench.units`: measures the units of all paths and writes local/plan/units.json.

--check writes nothing, and fails if the file says something else. --here measures what depends on the
machine, CPU and packed sizes, and writes local/plan/here.json.
"""

import json
import sys

from bench.units.budget import differences, message
from bench.units.measure import measured, write
from local.plan.measured_units import HERE, UNITS


def main(arguments: list[str]) -> int:
    """Measure, then write or check; returns the exit status."""
    if "--here" in arguments:
        from bench.units.machine import write_here

        write_here(HERE)
        return 0
    found = measured()
    if "--check" not in arguments:
        write(UNITS, found)
        return 0
    told = differences(json.loads(UNITS.read_text()), found)
    if told:
        print(message(told))
    return bool(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
