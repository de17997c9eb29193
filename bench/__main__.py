"""`python -m bench [NAME ...]`: compares our speed with that of what one would write or pick instead.

Each benchmark runs in a process of its own. The exit status is 1 if a budget is missed. Write units against
the usual design: `python -m bench.units`.
"""

import importlib
import subprocess
import sys

from bench.figure import HEADER

NAMES = ("processor_cpu", "cold_start", "curation", "night_growth", "night_history", "point_in_time")


def run_here(name: str) -> bool:
    """Run one benchmark in this process, and print its figures; returns whether all its budgets hold."""
    print(f"-- {name}", flush=True)
    is_any_missed = False
    for figure in importlib.import_module(f"bench.{name}").run():
        print(figure.line(), flush=True)
        is_any_missed |= figure.is_missed
    return not is_any_missed


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them; returns the exit status."""
    if unknown := set(names) - set(NAMES):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if len(names) == 1:
        return 0 if run_here(names[0]) else 1
    print(HEADER, flush=True)
    commands = ([sys.executable, "-m", "bench", name] for name in names or NAMES)
    return max(subprocess.run(command, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
