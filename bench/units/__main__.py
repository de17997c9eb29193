"""`python -m bench.units`: measures the units of all paths and writes local/plan/units.json.

--check writes nothing, and fails if the file says something else.
"""

import json
import sys

from bench.units.budget import differences, message
from bench.units.measure import measured, write
from local.paths import ROOT

FILE = ROOT / "local" / "plan" / "units.json"


def main(arguments: list[str]) -> int:
    """Measure, then write or check; returns the exit status."""
    found = measured()
    if "--check" not in arguments:
        write(FILE, found)
        return 0
    told = differences(json.loads(FILE.read_text()), found)
    if told:
        print(message(told))
    return bool(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
