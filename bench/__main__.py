"""`python -m bench [NAME ...]`: compares our speed with that of what one would write or pick instead.

Each benchmark runs in a process of its own. The exit status is 1 if a budget is missed. Write units against
the usual design: `python -m bench.units`.
"""

import importlib
import subprocess
import sys

from bench.figure import HEADER
from rules.parts import said

OWN = ("processor_cpu", "cold_start", "curation", "night_growth", "night_history")
MODULES = {  # by name
    **{name: f"bench.{name}" for name in OWN},
    **{name: module for benchmarks in said("benchmarks") for name, module in benchmarks.items()},
}


def run_here(name: str) -> bool:
    """Run one benchmark in this process, and print its figures; returns whether all its budgets hold."""
    print(f"-- {name}", flush=True)
    is_any_missed = False
    for figure in importlib.import_module(MODULES[name]).run():
        print(figure.line(), flush=True)
        is_any_missed |= figure.is_missed
    return not is_any_missed


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them; returns the exit status."""
    if unknown := set(names) - set(MODULES):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    if len(names) == 1:
        return 0 if run_here(names[0]) else 1
    print(HEADER, flush=True)
    commands = ([sys.executable, "-m", "bench", name] for name in names or MODULES)
    return max(subprocess.run(command, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
