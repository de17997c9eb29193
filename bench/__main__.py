"""`python -m bench [NAME ...]`: what the product costs against what one would write or pick instead.

Each benchmark runs in a process of its own. The exit status is 1 if a budget is missed. Write units against
the usual design: `python -m bench.units`.
"""

import importlib
import subprocess
import sys

from bench.figure import HEADER

NAMES = ("processor_cpu", "cold_start", "curation", "night_growth", "point_in_time")


def show(name: str) -> bool:
    """Run one benchmark in this process; returns whether all its budgets hold."""
    print(f"-- {name}", flush=True)
    missed = False
    for figure in importlib.import_module(f"bench.{name}").run():
        print(figure.line(), flush=True)
        missed |= figure.is_missed
    return not missed


def main(names: list[str]) -> int:
    """Run the benchmarks named, or all of them."""
    if unknown := set(names) - set(NAMES):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if len(names) == 1:
        return 0 if show(names[0]) else 1
    print(HEADER, flush=True)
    return max(
        subprocess.run([sys.executable, "-m", "bench", name], check=False).returncode
        for name in names or NAMES
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
