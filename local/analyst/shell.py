"""The shell of `streakline sql`: it reads queries from the terminal, or from a file on the standard input."""

import sys
from collections.abc import Callable, Sequence

from local.analyst import catalog
from local.analyst.output import QueryFailed


def shell(answer_query: Callable[[str], None]) -> None:
    """Answer queries of the standard input, one after the other. After a refused query it goes on.

    answer_query: prints the answer to a query, or raises QueryFailed.
    """
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        import readline

        readline.set_completer(_completer(list(catalog.names())))
        readline.set_completer_delims(" \t\n,()=")
        readline.parse_and_bind("tab: complete")
        print("A query ends with a semicolon. `.tables`, `.describe NAME`, `.quit`.")
    while (query := _read_query(is_terminal=is_terminal)) is not None:
        try:
            if query:
                answer_query(query)
        except QueryFailed as refused:
            print(refused, file=sys.stderr)


def _read_query(*, is_terminal: bool) -> str | None:
    """Return the next query or command, "" after Ctrl-C, None at the end."""
    lines: list[str] = []
    try:
        while True:
            prompt = ("...> " if lines else "sql> ") if is_terminal else ""
            line = input(prompt).rstrip()
            if not lines and line.startswith("."):
                return None if line in (".quit", ".exit") else line
            if line:
                lines.append(line)
            if line.endswith(";"):
                return "\n".join(lines)
    except EOFError:
        return "\n".join(lines) or None
    except KeyboardInterrupt:
        if not is_terminal:
            raise
        print()
        return ""


def _completer(names: Sequence[str]) -> Callable[[str, int], str | None]:
    """Return a completer for readline, which asks for the matches of a text one by one, by their index."""

    def complete(text: str, index: int) -> str | None:
        matches = [name for name in names if name.startswith(text)]
        return matches[index] if index < len(matches) else None

    return complete
