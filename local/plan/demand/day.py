"""A day's traffic in measured paths: how often each is taken, and what that comes to."""

from collections.abc import Iterator
from datetime import timedelta

from local.plan.demand.traffic import Part, Traffic
from local.plan.given.measured_units import Functions, MeasuredUnits, Spent, add, minus, together
from rules.engagement.boards import PAUSE_MAX, USERS_A_SECOND

BOARDS = ("streaks", "points")
MINUTES_A_DAY = 24 * 60


def event_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield the posts: each active user's first of the day, which extends the streak, and further ones."""
    users, size = traffic.daily_actives, traffic.events_a_post
    if not traffic.events:
        return
    fresh = users * traffic.new_users
    yield fresh, post(units, "first", size)
    yield users - fresh, post(units, "next", size)
    yield users * (traffic.posts_per_user - 1), post(units, "again", size)


def post(units: MeasuredUnits, kind: str, size: float) -> Spent:
    """Return the cost of a post of so many events: of a known date, and what the kind adds to that."""
    found = units.at("events.again", size)
    if kind == "again":
        return found
    return add(found, minus(units.paths[f"events.{kind}.1"], units.paths["events.again.1"]))


def reading_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield what users read and buy. What a board costs may depend on how many users are on it."""
    users = traffic.daily_actives
    yield users * traffic.reads_per_user, units.paths["read.profile"]
    yield users * traffic.redemptions_per_user, units.paths["redeem.reward"]
    for path in ("hold", "hold.capture"):
        yield users * traffic.holds_per_user, units.paths[path]
    yield traffic.accounts * traffic.expiries_per_account / 10, units.paths["expiry.10"]
    yield traffic.events * traffic.clawbacks, units.paths["clawback"]
    for board in BOARDS:
        for what in ("top", "rank"):
            each = users * traffic.boards_per_user / (2 * len(BOARDS))
            if each:
                yield each, on_a_line(units, f"board.{board}.{what}", traffic.accounts)


def snapshots(traffic: Traffic, units: MeasuredUnits, fires_a_day: float) -> Iterator[Part]:
    """Yield the counts of everybody for the boards: as often as the schedule fires, less with many users.

    The schedule's own invocations are not in it; they cost something without users, too. Nor is what a count
    stores: the next one takes its place.
    """
    pause = min(timedelta(seconds=traffic.accounts // USERS_A_SECOND), PAUSE_MAX)
    a_day = min(fires_a_day, timedelta(days=1) / pause if pause else fires_a_day)
    counted = on_a_line(units, "board.snapshot", traffic.accounts)
    left_out = ("invocations", "logs.bytes", "stored.Boards")
    yield (
        a_day,
        {
            function: {name: count for name, count in counts.items() if name not in left_out}
            for function, counts in counted.items()
        },
    )


def on_a_line(units: MeasuredUnits, stem: str, size: float) -> Spent:
    """Return a path's cost on the line through its smallest and its largest measured size."""
    low, high = units.sizes[stem][0], units.sizes[stem][-1]
    slope = minus(units.paths[f"{stem}.{high}"], units.paths[f"{stem}.{low}"])
    growing: Functions = {
        function: {name: count for name, count in counts.items() if count > 0}
        for function, counts in slope.items()
    }
    base = add({}, units.paths[f"{stem}.{low}"])
    return add(base, growing, max(0.0, size - low) / (high - low))


def lead_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield webhooks, the morning's refresh, and reads."""
    yield traffic.lead_events, units.paths["lead.next"]
    refreshed = units.sizes["lead.refresh"][0]
    yield traffic.leads / refreshed, units.paths[f"lead.refresh.{refreshed}"]
    for what in ("features", "memory", "events"):
        yield traffic.lead_reads / 3, units.paths[f"lead.read.{what}"]


def question_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield questions, the phones that are told, answers, and a look at the answers for each question."""
    told = units.sizes["question.told"][0]
    alone = units.paths["question.asked"]
    yield traffic.questions, alone
    yield traffic.questions * traffic.phones / told, minus(units.paths[f"question.told.{told}"], alone)
    yield traffic.answers, units.paths["question.answered"]
    yield traffic.questions, units.paths["question.polled"]


def outgoing_parts(traffic: Traffic, units: MeasuredUnits) -> Iterator[Part]:
    """Yield what endpoints are told, how it gets there, and the schedule. Leads count as users do."""
    if not traffic.webhook_endpoints:
        return
    count, changes = traffic.webhook_endpoints, traffic.told_changes
    yield MINUTES_A_DAY, on_a_line(units, "webhook.swept", count)
    yield changes, on_a_line(units, "webhook.told", count)
    yield changes * count, units.paths[f"webhook.delivered.{units.sizes['webhook.delivered'][0]}"]


def a_day(traffic: Traffic, units: MeasuredUnits) -> Spent:
    """Return what a day's paths cost, by function. The publisher's part is not in it: it works in batches."""
    parts = [
        *event_parts(traffic, units),
        *reading_parts(traffic, units),
        *lead_parts(traffic, units),
        *question_parts(traffic, units),
        *outgoing_parts(traffic, units),
    ]
    return together(parts)


def naive_day(traffic: Traffic, units: MeasuredUnits) -> Spent:
    """Return the same day, with the event path of the naive design in place of ours."""
    size, posts = traffic.events_a_post, traffic.posts_per_user
    parts: list[Part] = [*reading_parts(traffic, units), *lead_parts(traffic, units)]
    parts += [*question_parts(traffic, units), *outgoing_parts(traffic, units)]
    if traffic.events:
        parts.append((traffic.daily_actives, on_a_line(units, "naive.next", size)))
        parts.append((traffic.daily_actives * (posts - 1), on_a_line(units, "naive.again", size)))
    return together(parts)
