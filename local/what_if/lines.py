"""The figures of a prediction as lines for people."""

from collections.abc import Iterator

from analytics.what_if.summary import Json

IMPOSSIBLE_MAX = 10  # lines of what would not have been possible
REASONS_MAX = 3  # of one user's change


def lines(figures: Json) -> Iterator[str]:
    """Yield the report, line by line. figures: see analytics.what_if.summary.summary."""
    users = figures["users"]
    as_of = f"as of {figures['as_of'][:19]}Z"
    yield f"{figures['book']} {span(figures)}, {as_of}: {figures['entries']:,} ledger entries"
    yield from figures["limits"]
    yield ""
    counts = f"gain {users['gain']:,}, lose {users['lose']:,}, same {users['same']:,}"
    yield f"users       {users['all']:>14,}   {counts}"
    for name in ("points", "liability"):
        yield f"{name:<11} {_change(figures[name])}"
    yield from _streaks(figures["streaks"])
    yield from _goals(figures["goals"])
    yield from _levels(figures["levels"])
    yield from _types(figures)
    yield from _refused(figures["refused"])
    yield from _impossible(figures["impossible"])
    yield from _largest_changes(figures["largest_changes"])


def span(figures: Json) -> str:
    """Return from when until when the book is in force."""
    since, until = figures["from"], figures["to"]
    if not since and not until:
        return "in force all along"
    return f"in force from {since or 'the beginning'} to {until or 'the end'}"


def _change(pair: Json) -> str:
    before, after = pair["before"], pair["after"]
    percent = f" ({(after - before) / abs(before):+.1%})" if before else ""
    return f"{before:>14,} -> {after:>14,}   {after - before:+,}{percent}"


def _streaks(figures: Json) -> Iterator[str]:
    current, longest = figures["current"], figures["longest"]
    counts = f"longer {current['longer']:,}, shorter {current['shorter']:,}"
    yield f"streaks now {_change(figures['alive'])}   users who have one"
    yield f"their days  {_change(current)}   {counts}"
    counts = f"longer {longest['longer']:,}, shorter {longest['shorter']:,}"
    yield f"longest     {_change(longest)}   days of all users' longest: {counts}"
    yield ""
    yield "of all runs of active dates, this share reaches (a run that goes on counts as far as it has come:"
    yield "Kaplan-Meier)"
    for share in figures["survival"]:
        yield f"  {share['days']:>4} days   {share['before']:>7.1%} -> {share['after']:>7.1%}"


def _goals(figures: Json) -> Iterator[str]:
    if figures["streaks"]:
        yield ""
        yield "streaks that differ: users who ever reached a period, users who have it now, the longest"
    for streak in figures["streaks"]:
        changes = ", ".join(
            f"{word} {streak['before'][name]:,} -> {streak['after'][name]:,}"
            for name, word in (("reached", "reached"), ("current", "now"), ("longest", "longest"))
        )
        yield f"  {streak['name']:<22} {streak['change']:<8} a {streak['per']:<6} {changes}"
    if figures["achievements"]:
        yield ""
        yield "achievements that differ: users who have them"
    for achievement in figures["achievements"]:
        yield f"  {achievement['name']:<22} {achievement['change']:<8} {_change(achievement)}"


def _levels(levels: list[Json]) -> Iterator[str]:
    if levels:
        yield ""
        yield "users on each level"
    for level in levels:
        yield f"  {level['name'] or '(none)':<22} {_change(level)}"


def _types(figures: Json) -> Iterator[str]:
    yield ""
    yield "points by event type"
    for name, points in figures["by_type"].items():
        yield f"  {name:<22} {_change(points)}"


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
    for entry in figures["listed"][:IMPOSSIBLE_MAX]:
        reason = entry["why"]
        if entry["missing"]:
            reason = f"{entry['missing']:,} of {entry['points']:,} points missing"
        yield f"  {entry['at'][:19]}  {entry['user_id']}  {entry['what']}: {reason}"


def _largest_changes(users: list[Json]) -> Iterator[str]:
    yield ""
    if not users:
        yield "nobody's points, balance or longest streak changes"
        return
    yield "the largest changes"
    for user in users:
        changes = [
            f"{name} {user[f'{name}_before']:,} -> {user[f'{name}_after']:,}"
            for name in ("balance", "earned", "longest")
            if user[f"{name}_before"] != user[f"{name}_after"]
        ]
        yield f"  {user['user_id']}  {', '.join(changes)}"
        for reason in [*user["why"][:REASONS_MAX], *user["impossible"][:1]]:
            yield f"      {reason}"
