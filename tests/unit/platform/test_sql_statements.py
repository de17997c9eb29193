"""A script is split where PostgreSQL ends a statement, and nowhere else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.postgresql.migrations import FOLDER, is_empty, split_script, statements

INSIDE = st.text(alphabet="a;'\"$\\-/*\n E", max_size=12)
TAG = st.sampled_from(["", "a", "body_1", "é"])


def _commented(inside: str) -> str:
    return inside.replace("*", "").replace("/", "")


PIECES = st.one_of(
    st.sampled_from(["select 1", "a$b", "x", "::text", " ", "\n", "1", "(", ")", "$1", "e", "- -", "/"]),
    INSIDE.map(lambda each: "'" + each.replace("'", "''") + "'"),
    INSIDE.map(lambda each: "E'" + each.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    INSIDE.map(lambda each: " e'" + each.replace("\\", "\\\\").replace("'", "''") + "'\n 'b\\';'"),
    INSIDE.map(lambda each: '"' + each.replace('"', '""') + '"'),
    INSIDE.map(lambda each: "--" + each.replace("\n", "") + "\n"),
    INSIDE.map(lambda each: f"/*{_commented(each)}/*{_commented(each)};*/;*/"),
    st.tuples(TAG, INSIDE).map(lambda each: f" ${each[0]}${each[1].replace('$', '')};${each[0]}$"),
)
# Pieces are joined by " + ": side by side two of them could be read as one, as E'' followed by '\';' on the next
# line is.
STATEMENT = st.lists(PIECES, max_size=5).map(" + ".join)


@given(st.text(alphabet="ab;'\"$\\-/*\n E1", max_size=40))
def test_joined_the_statements_are_the_text(text: str) -> None:
    try:
        found = split_script(text)
    except ValueError as refused:
        assert "has no end" in str(refused)
    else:
        assert "".join(found) == text
        assert all(each.endswith(";") for each in found[:-1])


@given(st.lists(STATEMENT, min_size=1, max_size=5))
@example(["select 1 --;;\n"])
def test_a_semicolon_that_is_quoted_ends_nothing(parts: list[str]) -> None:
    text = ";".join(parts)
    wanted = [f"{each};" for each in parts[:-1]] + [parts[-1]] * bool(parts[-1])
    assert split_script(text) == (wanted or [""])
    # Semicolons that end a comment at the very end may go too: they say nothing.
    bare = [each.lstrip().rstrip("; \n") for each in parts if not is_empty(each)]
    assert [each.rstrip("; \n") for each in statements(text)] == bare


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" ;; -- nothing;\n/* ; */ ;", 0),
        ("SELECT 1", 1),
        ("SELECT 1; -- the end;", 1),
        ("SELECT 'it''s;'; SELECT 2", 2),
        (r"SELECT E'\';'; SELECT '\'; SELECT 3", 3),
        ("SELECT typE';'; SELECT 2", 2),
        ("SELECT E'a'\n'\\';'; SELECT 2", 2),
        ("SELECT E'a' -- ;\n -- ';\n '\\';'; SELECT 2", 2),
        ("SELECT E'a' '\\'; SELECT 2", 2),
        (f"SELECT E'a' {'-' * 80}\n; SELECT 2", 2),  # a line of dashes is one comment: it once took for ever
        ('SELECT 1 AS "a"";"; SELECT 2', 2),
        ("DO $$ BEGIN; END $$; SELECT 2", 2),
        ("DO $a$ $b$; $$; $a$; SELECT 2", 2),
        ("SELECT a$b$c; SELECT $1; SELECT b$c$d", 3),
        ("/* a /* b; */ c; */ SELECT 1; SELECT 2", 2),
        ("SELECT 1 -- ' ; $$\n; SELECT 2", 2),
        ("SELECT ':=', x::int; SELECT 2", 2),
    ],
)
def test_examples(text: str, count: int) -> None:
    assert len(statements(text)) == count
    assert "".join(split_script(text)) == text


@pytest.mark.parametrize(
    "text", ["SELECT\n'a", r"SELECT\n E'a\'", '"a', "$$ a", "$a$ b $$", "/* /* */", "E'"]
)
def test_what_has_no_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"what begins with .* in line \d has no end"):
        split_script(text)


def test_a_body_that_would_be_cut_in_pieces_is_refused() -> None:
    with pytest.raises(ValueError, match="BEGIN ATOMIC"):
        statements("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END")


def test_no_statement_of_ours_is_longer_than_the_data_api_takes() -> None:
    files = sorted(FOLDER.glob("*.sql"))
    assert files
    for path in files:
        assert all(len(each) < 65_536 for each in statements(path.read_text())), path.name
