"""The figures of a prediction as lines for people."""

from collections.abc import Iterator

from analytics.what_if.summary import Json

IMPOSSIBLE_SHOWN = 10
REASONS_SHOWN = 3


def lines(figures: Json) -> Iterator[str]:
    """Yield the report, line by line. figures: see analytics.what_if.summary.summary."""
    users = figures["users"]
    as_of = f"as of {figures['as_of'][:19]}Z"
    yield f"{figures['book']} {_span(figures)}, {as_of}: {figures['entries']:,} ledger entries"
    yield ""
    moved = f"gain {users['gain']:,}, lose {users['lose']:,}, same {users['same']:,}"
    yield f"users       {users['all']:>14,}   {moved}"
    for name, title in (("points", "points"), ("liability", "liability")):
        yield f"{title:<11} {_change(figures[name])}"
    yield from _streaks(figures["streaks"])
    yield from _goals(figures["goals"])
    yield from _types(figures)
    yield from _refused(figures["refused"])
    yield from _impossible(figures["impossible"])
    yield from _top(figures["largest_changes"])


def _span(figures: Json) -> str:
    since, until = figures["from"], figures["to"]
    if not since and not until:
        return "in force all along"
    return f"in force from {since or 'the beginning'} to {until or 'the end'}"


def _change(pair: Json) -> str:
    before, after = pair["before"], pair["after"]
    part = f" ({(after - before) / abs(before):+.1%})" if before else ""
    return f"{before:>14,} -> {after:>14,}   {after - before:+,}{part}"


def _streaks(figures: Json) -> Iterator[str]:
    current, longest = figures["current"], figures["longest"]
    moved = f"longer {current['longer']:,}, shorter {current['shorter']:,}"
    yield f"alive       {_change(figures['alive'])}"
    yield f"days now    {_change(current)}   {moved}"
    yield f"longest     {_change(longest)}   longer {longest['longer']:,}, shorter {longest['shorter']:,}"
    yield ""
    yield "of all runs of active dates, this share reaches"
    for each in figures["survival"]:
        yield f"  {each['days']:>4} days   {each['before']:>7.1%} -> {each['after']:>7.1%}"


def _goals(figures: Json) -> Iterator[str]:
    if figures["streaks"]:
        yield ""
        yield "streaks that differ: users who ever reached a period, users who have it now, the longest"
    for each in figures["streaks"]:
        changes = ", ".join(
            f"{word} {each['before'][name]:,} -> {each['after'][name]:,}"
            for name, word in (("reached", "reached"), ("current", "now"), ("longest", "longest"))
        )
        yield f"  {each['name']:<22} {each['change']:<8} a {each['per']:<6} {changes}"
    if figures["achievements"]:
        yield ""
        yield "achievements that differ: users who have them"
    for each in figures["achievements"]:
        yield f"  {each['name']:<22} {each['change']:<8} {_change(each)}"


def _types(figures: Json) -> Iterator[str]:
    yield ""
    yield "points by event type"
    for name, each in figures["by_type"].items():
        yield f"  {name:<22} {_change(each)}"


def _refused(figures: Json) -> Iterator[str]:
    if figures["events"]:
        yield ""
        yield f"{figures['events']:,} events would have been refused: this book lacks their type, or, in "
        yield f"{figures['for_their_properties']:,} cases, its contract refuses their properties"


def _impossible(figures: Json) -> Iterator[str]:
    if not figures["all"]:
        return
    yield ""
    kinds = ", ".join(f"{what} {count:,}" for what, count in figures["by_kind"].items())
    yield (
        f"would not have been possible: {figures['all']:,} of {figures['points']:,} points ({kinds}); "
        f"{figures['redemptions']:,} redemptions in all"
    )
    for each in figures["listed"][:IMPOSSIBLE_SHOWN]:
        lacks = (
            f"{each['missing']:,} of {each['points']:,} points missing" if each["missing"] else each["why"]
        )
        yield f"  {each['at'][:19]}  {each['user_id']}  {each['what']}: {lacks}"


def _top(rows: list[Json]) -> Iterator[str]:
    if not rows:
        yield ""
        yield "nobody's points, balance or longest streak changes"
        return
    yield ""
    yield "the largest changes"
    for row in rows:
        parts = [
            f"{name} {row[f'{name}_before']:,} -> {row[f'{name}_after']:,}"
            for name in ("balance", "earned", "longest")
            if row[f"{name}_before"] != row[f"{name}_after"]
        ]
        yield f"  {row['user_id']}  {', '.join(parts)}"
        for each in [*row["why"][:REASONS_SHOWN], *row["impossible"][:1]]:
            yield f"      {each}"
