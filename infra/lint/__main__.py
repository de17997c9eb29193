"""The lint that sees what CloudFormation sees: python -m infra.lint. It ends with 1 if there is a fault."""

import sys

from infra.lint.run import run
from infra.lint.stacks import TEMPLATE


def main() -> None:
    """Lint template.yaml with all that it nests, and print a line per fault."""
    lines, sets = run(TEMPLATE)
    print("\n".join([*lines, f"{len(lines)} faults with {sets} sets of parameters"]))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
