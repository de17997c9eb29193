"""Cells of CSV files, which people open in spreadsheets: what somebody else wrote must not run there.

A spreadsheet takes a cell that begins with one of these signs for a formula. So every file of ours has a `'`
before the text of such a cell, as OWASP's page on CSV injection says. Numbers are written as they are.
"""

import re

RUNS = "=+-@\t\r\n＝＋－＠"  # the wide ones in East Asia
RUNNING = re.compile(f"^[{re.escape(RUNS)}]")
QUOTE = "'"


def cell(value: object) -> object:
    """Return a value as the cell of a CSV file: a text that would run has a `'` before it."""
    return QUOTE + value if isinstance(value, str) and value.startswith(tuple(RUNS)) else value


def text_of(written: str) -> str:
    """Return the text of a cell that `cell` wrote."""
    return written[1:] if written[:1] == QUOTE and written[1:2] and written[1] in RUNS else written
