"""`streakline sql`: one query of the warehouse or of the lake, as a table or into a file."""

import argparse
import shutil
import sys
import time
from pathlib import Path

from local.analyst import printing
from local.analyst.answer import Answer, Tell
from local.analyst.asking import ask
from local.stack import Stack

WIDTH_ELSEWHERE = 200  # where the output is no terminal


def run(arguments: argparse.Namespace, stack: Stack) -> None:
    """Ask, and print the rows or write them to --out.

    Raises QueryFailed, ValueError and what botocore raises.
    """
    if arguments.out is not None:
        printing.check_file(arguments.out)
    began, tell = time.monotonic(), _teller()
    with ask(stack, arguments.query, on=arguments.on, tell=tell) as answer:
        tell("")
        told = _written(answer, arguments.out) if arguments.out else _printed(answer)
    scanned = "" if answer.scanned_bytes is None else f", {answer.scanned_bytes:,} bytes scanned"
    print(f"{told}; {answer.engine}, {time.monotonic() - began:.1f} s{scanned}", file=sys.stderr)


def _written(answer: Answer, path: Path) -> str:
    return f"{printing.write(answer, path):,} rows in {path}"


def _printed(answer: Answer) -> str:
    rows, are_more = printing.first_rows(answer)
    print(printing.text_table(rows, shutil.get_terminal_size((WIDTH_ELSEWHERE, 24)).columns))
    return f"the first {rows.num_rows} rows: --out FILE has all" if are_more else f"{rows.num_rows} rows"


def _teller() -> Tell:
    """Return what shows progress on one line of a terminal, and nowhere else."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
