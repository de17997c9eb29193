"""The figures of a prediction as lines for people."""

from collections.abc import Iterator

from local.what_if.figures import Json

IMPOSSIBLE_SHOWN = 10
REASONS_SHOWN = 3


def lines(found: Json) -> Iterator[str]:
    """Yield the report, line by line."""
    users = found["users"]
    yield f"{found['book']} {_span(found)}, as of {found['as_of'][:19]}Z: {found['entries']:,} ledger entries"
    yield ""
    moved = f"gain {users['gain']:,}, lose {users['lose']:,}, same {users['same']:,}"
    yield f"users       {users['all']:>14,}   {moved}"
    for name, title in (("points", "points"), ("liability", "liability")):
        yield f"{title:<11} {_change(found[name])}"
    yield from _streaks(found["streaks"])
    yield from _goals(found["goals"])
    yield from _types(found)
    yield from _refused(found["refused"])
    yield from _impossible(found["impossible"])
    yield from _top(found["largest_changes"])


def _span(found: Json) -> str:
    since, until = found["from"], found["to"]
    if not since and not until:
        return "in force all along"
    return f"in force from {since or 'the beginning'} to {until or 'the end'}"


def _change(pair: Json) -> str:
    before, after = pair["before"], pair["after"]
    part = f" ({(after - before) / abs(before):+.1%})" if before else ""
    return f"{before:>14,} -> {after:>14,}   {after - before:+,}{part}"


def _streaks(found: Json) -> Iterator[str]:
    current, longest = found["current"], found["longest"]
    moved = f"longer {current['longer']:,}, shorter {current['shorter']:,}"
    yield f"alive       {_change(found['alive'])}"
    yield f"days now    {_change(current)}   {moved}"
    yield f"longest     {_change(longest)}   longer {longest['longer']:,}, shorter {longest['shorter']:,}"
    yield ""
    yield "of all runs of active dates, this share reaches"
    for each in found["survival"]:
        yield f"  {each['days']:>4} days   {each['before']:>7.1%} -> {each['after']:>7.1%}"


def _goals(found: Json) -> Iterator[str]:
    if found["streaks"]:
        yield ""
        yield "streaks that differ: users who ever reached a period, users who have it now, the longest"
    for each in found["streaks"]:
        figures = ", ".join(
            f"{word} {each['before'][name]:,} -> {each['after'][name]:,}"
            for name, word in (("reached", "reached"), ("current", "now"), ("longest", "longest"))
        )
        yield f"  {each['name']:<22} {each['change']:<8} a {each['per']:<6} {figures}"
    if found["achievements"]:
        yield ""
        yield "achievements that differ: users who have them"
    for each in found["achievements"]:
        yield f"  {each['name']:<22} {each['change']:<8} {_change(each)}"


def _types(found: Json) -> Iterator[str]:
    yield ""
    yield "points by event type"
    for name, each in found["by_type"].items():
        yield f"  {name:<22} {_change(each)}"


def _refused(found: Json) -> Iterator[str]:
    if found["events"]:
        yield ""
        yield f"{found['events']:,} events would have been refused: this book lacks their type, or, in "
        yield f"{found['for_their_properties']:,} cases, its contract refuses their properties"


def _impossible(found: Json) -> Iterator[str]:
    if not found["all"]:
        return
    yield ""
    kinds = ", ".join(f"{what} {count:,}" for what, count in found["by_kind"].items())
    yield (
        f"would not have been possible: {found['all']:,} of {found['points']:,} points ({kinds}); "
        f"{found['redemptions']:,} redemptions in all"
    )
    for each in found["listed"][:IMPOSSIBLE_SHOWN]:
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
