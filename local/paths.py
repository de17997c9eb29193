"""Where the laptop cloud keeps its things: .local/ in the checkout, and nowhere else."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"
STACK = LOCAL / "stack.json"
LOGS = LOCAL / "logs"
REPORT = LOCAL / "report.html"
WAREHOUSE = LOCAL / "warehouse.duckdb"
