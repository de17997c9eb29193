"""Holds every answer of the real code against the oracle."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from math import inf
from typing import TYPE_CHECKING, Any

from tests.oracle import plans
from tests.oracle.board_reading import as_stored, counted
from tests.oracle.calendar_dates import date_in, start_of
from tests.oracle.facts import refusal, said
from tests.oracle.ledger_reading import HELD_MAX, LedgerReading, is_repair
from tests.oracle.points_reading import level_of
from tests.oracle.repair_reading import repairable
from tests.oracle.streak_reading import Streak, paused_in_a_year, told

if TYPE_CHECKING:
    from tests.oracle.rounds import Round, Told

DAY = timedelta(days=1)
FREEZES_FREE, FREEZE_PRICE, PAUSED_MAX = 2, 100, 92
# What explain may call a date that the oracle calls so.
CALLED = {
    "counted": {"counted"},
    "freeze": {"covered_by_freeze"},
    "repair": {"repaired"},
    "paused": {"paused"},
    "skipped": {"skipped_by_zone", "paused"},
    "rest": {"rest_day"},
    "short": {"short_date"},
    "missed": {"missed"},
    "open": {"not_over_yet"},
    "before": {"before_first_activity"},
}


class Judge:
    """Of one round. wrong: what has been found."""

    def __init__(self, round_: "Round") -> None:
        self.round, self.facts, self.machines = round_, round_.facts, round_.machines
        self.wrong: list[str] = []
        self.commands: list[Told] = []
        self.entry_of: dict[str, str] = {}
        self.asked: dict[str, plans.Redeem | plans.TakeFreeze] = {}
        self.undone: set[str] = set()
        self.repaired: set[str] = set()
        self.taken_back: dict[str, str] = {}  # event by entry, as callers were told
        self.released = False
        self.reading: LedgerReading | None = None  # the newest

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)

    # ---- what callers were told

    def hear(self, answers: "list[Told]", unanswered: list[plans.Action]) -> None:
        """Take in the answers of a phase; empties both lists."""
        posts = [each for each in answers if isinstance(each.action, plans.Post)]
        self._posts(posts, [each for each in unanswered if isinstance(each, plans.Post)])
        for each in answers:
            match each.action:
                case plans.Move(zone):
                    self.must(each.status == 200, f"{each.action}: {each.status} {each.body}")
                    self.facts.moves.append((each.clock, zone))
                    self.facts.moves_told_at.append(each.last_step)
                case plans.Pause():
                    self._pause(each)
                case plans.Rest():
                    self._rest(each)
                case plans.Release():
                    self.must(each.status == 200, f"{each.action}: {each.status} {each.body}")
                    self.released = True
                case plans.Look(how):
                    self.must(each.status == 200, f"{each.action}: {each.status} {each.body}")
                    if how == "balance":  # a profile may be a moment old
                        self.commands.append(each)
                case plans.Redeem() | plans.TakeFreeze() | plans.Repair() | plans.Undo() | plans.Reverse():
                    self.commands.append(each)
        answers.clear()
        unanswered.clear()

    def _pause(self, heard: "Told") -> None:
        action = heard.action
        assert isinstance(action, plans.Pause)
        with_it = [*self.facts.pauses, (action.first, action.last)]
        today = heard.clock.date()
        newest = max([today, *(each.claimed for each in self.facts.events.values())])
        if (action.first, action.last) in self.facts.pauses:
            self.must(heard.status == 200, f"{action}: {heard.status}, though it is there")
        elif action.first < today - DAY or (action.first <= newest + DAY and heard.status == 422):
            self.must(heard.status == 422, f"{action}: {heard.status} {heard.body}")
        elif paused_in_a_year(with_it) > PAUSED_MAX:
            self.must(heard.status == 409, f"{action}: {heard.status}, though too many dates are paused")
        else:
            # 200: the first answer was lost.
            self.must(heard.status in (200, 201), f"{action}: {heard.status} {heard.body}")
            self.facts.pauses = with_it
            self.facts.pauses_told_at.append(heard.last_step)

    def _rest(self, heard: "Told") -> None:
        action = heard.action
        assert isinstance(action, plans.Rest)
        wanted = frozenset(map(plans.WEEKDAYS.index, action.weekdays))
        tomorrow_everywhere = (heard.clock + timedelta(hours=14)).date() + DAY
        since, last = self.facts.choices[-1] if self.facts.choices else (date.min, frozenset())
        if wanted == last:
            self.must(heard.status == 200, f"{action}: {heard.status}, though it is so")
        elif tomorrow_everywhere < since + timedelta(days=28):
            kept = heard.body.get("error", {}).get("code") == "rest_days_kept"
            self.must(
                heard.status == 409 and kept, f"{action}: {heard.status}, though one was made on {since}"
            )
        else:
            self.must(heard.status == 200, f"{action}: {heard.status} {heard.body}")
            # The first answer may have been lost, just before a date began.
            first = date.fromisoformat(heard.body["from"])
            self.must(first in (tomorrow_everywhere, tomorrow_everywhere - DAY), f"{action}: from {first}")
            self.facts.choices.append((first, wanted))

    def _posts(self, answers: "Sequence[Told]", unanswered: Sequence[plans.Action]) -> None:
        heard: dict[str, list[tuple[plans.Body, dict[str, Any], Told]]] = defaultdict(list)
        for each in answers:
            assert isinstance(each.action, plans.Post)
            details = each.body["results"] if each.status == 202 else each.body["error"]["details"]
            if each.status not in (202, 403):
                self.wrong.append(f"{each.action}: {each.status} {each.body}")
                continue
            for body, result in zip(each.action.bodies, details, strict=True):
                heard[body["idempotency_key"]].append((body, result, each))
        unsure = {
            body["idempotency_key"]
            for each in unanswered
            if isinstance(each, plans.Post)
            for body in each.bodies
        }
        for key, told_ in heard.items():
            self._key(key, told_, key in unsure)

    def _key(self, key: str, heard: list[Any], unsure: bool) -> None:
        """What all callers with one key were told in a phase must be one story (rule 4)."""
        taken = [each for each in heard if each[1]["status"] in ("accepted", "duplicate")]
        held = self.facts.held(key, heard[0][2].clock)
        new = held is None
        if held is None and taken:
            firsts = sum(result["status"] == "accepted" for _, result, _ in taken)
            self.must(firsts == 1 or (unsure and firsts == 0), f"{key} was accepted {firsts} times")
            body, result, told_ = taken[0]
            self.facts.take(body, result["event_id"], told_.clock)
            held = self.facts.keys[key]
        elif held:
            self.must(
                not any(result["status"] == "accepted" for _, result, _ in taken),
                f"{key} was accepted though it is held",
            )
        for body, result, told_ in taken:
            if result["status"] == "accepted":
                refused = refusal(body, told_.action.door, told_.clock)
                self.must(None in refused, f"{body} at {told_.clock} was accepted; rules say {refused}")
        for body, result, told_ in heard:
            self._result(body, result, told_, held, new)

    def _result(self, body: Any, result: Any, told_: "Told", held: Any, new: bool) -> None:
        assert isinstance(told_.action, plans.Post)
        refused, status = refusal(body, told_.action.door, told_.clock), result["status"]
        code = (result.get("error") or {}).get("code")
        what = f"{body} by {told_.action.door} at {told_.clock}: {result}"
        if held and said(body) == held.said:
            same = status in ("accepted", "duplicate") and result["event_id"] == held.event_id
            may_be_refused = refused - {None} if new else refused & {"forbidden"}
            self.must(same or code in may_be_refused, f"{what}; the key holds this body")
        elif held:
            self.must(status == "conflict" or code in refused - {None}, f"{what}; the key holds {held}")
        else:
            self.must(status == "rejected" and code in refused - {None}, f"{what}; rules say {refused}")

    # ---- what tables hold

    def judge(self, whole: bool) -> None:
        """Hold the tables against the facts; for use when all records have been applied.

        whole: everything; else the ledger and the profile.
        """
        self.machines.get("/balance")  # what is due is written before somebody sees a balance
        entries = self.machines.pages("/ledger", "entries")[::-1]
        wrote = {each.seq: each.clock for each in self.machines.commits}
        steps = {each.seq: each.step for each in self.machines.commits}
        reading = LedgerReading(self.facts, wrote, steps).read(entries)
        self.reading = reading
        self.wrong += reading.wrong
        if reading.wrong:
            return
        for heard in sorted(self.commands, key=lambda each: each.status):
            self._command(heard, reading)
        self.commands.clear()
        self._spendings(reading)
        self._bonuses(reading)
        self._boards(entries)
        if whole:
            self._days(reading)
            # A machine whose clock is days ahead has stored that a streak is over.
            found = [] if self.round.plan.skewed else self.machines.night()
            self.must(not found, f"the night finds {found}")
        self._streak(reading, whole)

    def _streak(self, reading: LedgerReading, whole: bool) -> None:
        profile, protection = self.machines.get(""), reading.protection()
        today = date.fromisoformat(profile["as_of"])
        last = max(reading.days, default=None)
        zone = self.facts.zone_set
        if zone:
            clock = self.machines.actor.clock
            self.must(profile["timezone"] == zone, f"zone {profile['timezone']}, not {zone}")
            now = date_in(zone, clock, self.facts.starts)
            self.must(today == max(now, last or now), f"today is {today}, not {now}")
        self.must(profile["balance"] == (reading.balances or [0])[-1], f"balance {profile['balance']}")
        self.must(profile["total_bestie_points"] == reading.total, f"total {profile['total_bestie_points']}")
        self.must(profile["level"] == level_of(reading.total), f"{reading.total} points: {profile['level']}")
        starts = start_of(today + DAY, self.facts.starts).isoformat("minutes")
        self.must(
            profile["day_starts_at"] == starts, f"days start at {profile['day_starts_at']}, not {starts}"
        )
        self._shown(profile, told(reading.days, protection, today))
        self._offered(profile, reading, today)
        if not last:
            return
        first, chance = min(reading.days), self.machines.chance
        journalled = {day for day, times in reading.used.items() if times}
        self.must(
            set(reading.used.values()) <= {0, 1}, f"freezes were journalled twice: {dict(reading.used)}"
        )
        used = told(reading.days, protection, last).spent
        self.must(journalled == used, f"freezes cover {sorted(journalled)}, not {sorted(used)}")
        if not whole:
            return
        for asked in (first + chance.randrange((today - first).days + 1) * DAY, today + 3 * DAY):
            self._shown(self.machines.get("", as_of=str(asked)), told(reading.days, protection, asked))
        self._explained(first + chance.randrange((today - first).days + 1) * DAY, today, reading)

    def _offered(self, profile: Any, reading: LedgerReading, today: date) -> None:
        terms, expected = self.facts.book_at(self.machines.actor.clock).repairs, None
        if terms:
            repaired = list(reading.repairs.values())
            expected = repairable(set(reading.days), reading.protection(), repaired, terms, today)
        offer = profile.get("repair")
        shown = offer and ([*map(date.fromisoformat, offer["dates"])], date.fromisoformat(offer["until"]))
        self.must(shown == expected, f"on {today} {shown} may be repaired, not {expected}")
        price = len(offer["dates"]) * terms.price_points if offer and terms else 0
        self.must(not offer or offer["price_points"] == price, f"it costs {offer}, not {price}")

    def _shown(self, profile: Any, expected: Streak) -> None:
        shown = {
            "current_streak": expected.current,
            "longest_streak": expected.longest,
            "last_activity_date": expected.last and str(expected.last),
            "freezes_available": expected.freezes,
            "active_days": expected.active_days,
        }
        covered = expected.reasons.get(date.fromisoformat(profile["as_of"])) in (
            "paused",
            "skipped",
            "rest",
            "short",
        )
        shown["streak_status"] = "active" if covered and expected.status == "at_risk" else expected.status
        different = {name: (profile[name], value) for name, value in shown.items() if profile[name] != value}
        self.must(not different, f"as of {profile['as_of']} (shown, expected): {different}")

    def _explained(self, asked: date, today: date, reading: LedgerReading) -> None:
        given = self.machines.get("/streak/explain", date=str(asked))
        whole = told(reading.days, reading.protection(), max(today, asked))
        reason, events = whole.reasons.get(asked, "missed"), reading.days.get(asked, [])
        if reason == "freeze" and asked in reading.repairs.values():
            reason = "repair"
        called = CALLED[reason] | (CALLED["open"] if asked >= today and reason == "missed" else set())
        self.must(given["reason"] in called, f"{asked} is {given['reason']}, not {reason}")
        length = whole.lengths.get(asked, 0)
        self.must(given["streak_length"] == length, f"{asked}: {given['streak_length']}, not {length}")
        self.must(
            given["events_count"] == len(events), f"{asked}: {given['events_count']} of {len(events)} events"
        )

    def _days(self, reading: LedgerReading) -> None:
        days = {each["activity_date"]: each for each in self.machines.pages("/activity", "activity")}
        self.must(
            set(days) == set(map(str, reading.days)), f"active: {sorted(days)}, not {sorted(reading.days)}"
        )
        for day, ids in reading.days.items():
            if row := days.get(str(day)):
                by_type = {
                    name: points for (when, name), points in reading.earned.items() if when == day and points
                }
                found = {name: points for name, points in row["points_by_type"].items() if points}
                self.must(found == by_type, f"{day}: {found}, not {by_type}")
                self.must(
                    row["points_earned"] == sum(by_type.values()), f"{day}: {row['points_earned']} points"
                )
                self.must(
                    row["events_count"] == len(ids), f"{day}: {row['events_count']} of {len(ids)} events"
                )
                # A date's first event stays its first when it is taken back.
                ever = [each for each, (when, _) in reading.placed.items() if when == day]
                begin = row["first_event_id"]
                self.must(begin == min(ever), f"{day} begins with {begin}")
        span = {"from": "1970-01-01", "to": "2990-01-01"}
        events = {each["event_id"]: each for each in self.machines.pages("/events", "events", **span)}
        soon = self.machines.now + 7 * DAY
        alive = {held.event_id for key, held in self.facts.keys.items() if self.facts.held(key, soon)}
        missing = alive - set(events) - set(self.facts.renewed)
        self.must(not missing, f"accepted and not stored: {missing}")
        unknown = set(events) - set(self.facts.events)
        self.must(not unknown, f"stored and not accepted: {unknown}")
        for event_id, row in events.items():
            given = (date.fromisoformat(row["activity_date"]), row["points_awarded"], row["event_type"])
            came = [self.facts.events[event_id], self.facts.renewed.get(event_id)]
            due = [(each.claimed, each.worth, each.event_type) for each in came if each]
            self.must(given in due, f"{event_id} is stored as {given}, and came as {due}")

    # ---- commands

    def _command(self, heard: "Told", reading: LedgerReading) -> None:
        action, status, body = heard.action, heard.status, heard.body
        code = body["error"]["code"] if status >= 400 else ""
        what = f"{action}: {status} {body}"
        if isinstance(action, plans.Undo):
            self._undo(what, self.round.bought[action.key], body, code, reading)
            return
        if isinstance(action, plans.Repair):
            self._repaired(what, heard, code, reading)
            return
        if isinstance(action, plans.Reverse):
            self._reversed(what, body, code, reading)
            return
        if isinstance(action, plans.Look):
            self.must(body["balance"] in self._balances(heard, reading), what)
            return
        assert isinstance(action, plans.Redeem | plans.TakeFreeze)
        if status == 201:
            self.must(body["entry_id"] in reading.spendings, f"{what} has no entry")
            self.must(self.entry_of.setdefault(action.key, body["entry_id"]) == body["entry_id"], what)
            self.must(self.asked.setdefault(body["entry_id"], action) == action, f"{what} holds another body")
            if isinstance(action, plans.Redeem) and not self.released:
                # A writer may die between an entry and the profile. The event's next delivery starts the review.
                suspicious = [
                    seq
                    for event_id, seq in reading.moved.items()
                    if seq < body["seq"] and self.round.applied.get(event_id, inf) <= heard.first_step
                ]
                self.must(not suspicious, f"{what}, though entries {suspicious} put the account under review")
        elif code == "conflict":
            self.must(action.key in self.entry_of, what)
            self.must(self.asked.get(self.entry_of.get(action.key, "")) != action, what)
        elif code == "insufficient_balance":
            price = action.points if isinstance(action, plans.Redeem) else FREEZE_PRICE
            low = min(self._balances(heard, reading))
            self.must(low < price, f"{what}, though the balance was {low}")
        elif code == "under_review":
            seen = len(self.facts.offsets()) > 1 or reading.moved
            self.must(bool(seen), f"{what} of a user who never moved, and whose dates are those claimed")
        elif code == "freezes_held_max":
            self.must(len(reading.changes) >= HELD_MAX, what)
        else:
            self.wrong.append(what)

    def _repaired(self, what: str, heard: "Told", code: str, reading: LedgerReading) -> None:
        prices = [
            terms.price_points * terms.dates_max for each in self.facts.books if (terms := each.repairs)
        ]
        if not code:
            bought = [reading.spendings.get(each["entry_id"], {}) for each in heard.body["entries"]]
            dates = [each.get("freeze_date") for each in bought if each and is_repair(each)]
            self.must(dates == heard.body["dates"] and len(dates) == len(bought), what)
            self.must(heard.body["price_points"] == -sum(each["points"] for each in bought), what)
            self.repaired |= {each["entry_id"] for each in heard.body["entries"]}
        elif code == "insufficient_balance":
            low = min(self._balances(heard, reading))
            self.must(low < max(prices), f"{what}, though the balance was {low}")
        elif code == "under_review":
            self.must(len(self.facts.offsets()) > 1 or bool(reading.moved), what)
        else:
            self.must(code in ("not_repairable", "conflict"), what)

    def _reversed(self, what: str, body: Any, code: str, reading: LedgerReading) -> None:
        entries = set(reading.reversed.values())
        if not code:
            self.must(reading.reversed.get(body["event_id"]) == body["entry_id"], what)
            told_ = self.taken_back.setdefault(body["event_id"], body["entry_id"])
            self.must(told_ == body["entry_id"], what)
        elif code == "already_reversed":
            self.must(bool(entries), what)
        else:
            # It may not have been applied yet.
            self.must(code == "not_found", what)

    def _bonuses(self, reading: LedgerReading) -> None:
        """All that events earn is paid by now, in the ledger and in what users are shown."""
        paid, due = reading.bonuses_paid(), reading.bonuses_due(self.machines.actor.clock)
        self.must(paid == due, f"bonuses {paid}, not {due}")
        unasked = set(reading.reversed) - self.facts.reversed_keys
        self.must(not unasked, f"nobody took {unasked} back")
        shown = {each["name"]: each for each in self.machines.get("/achievements")["achievements"]}
        for name in self.facts.paying(self.machines.actor.clock):
            points = paid[name][1] if name in paid else 0
            given = shown.get(name, {"paid": 0, "achieved": False})
            self.must(
                (given["paid"], given["achieved"]) == (points, points > 0), f"{name}: {given}, not {points}"
            )
        scores = self.machines.scores()
        board = reading.total - sum(points for _, points in paid.values())
        self.must((scores or {}).get("points", 0) == max(0, board), f"on boards: {scores}, not {board}")

    def _boards(self, entries: Sequence[Any]) -> None:
        """A profile has what boards count of its ledger, whoever wrote what when."""
        key = {"user_id": {"S": self.machines.user}}
        item = self.machines.stream.real.get_item(TableName="UserStreaks", Key=key).get("Item", {})
        found = as_stored(item["period_points"]["S"] if "period_points" in item else "")
        expected = counted(entries, self.facts.starts)
        self.must(found == expected, f"boards count {found}, not {expected}")

    def _undo(self, what: str, undone: str, body: Any, code: str, reading: LedgerReading) -> None:
        if code:
            self.must(code == "already_reversed" and undone in reading.undone, what)
            return
        self.must(reading.undone.get(undone) == body["entry_id"], what)
        self.must(undone not in self.undone, f"{what}: a second time")
        self.undone.add(undone)

    def _balances(self, heard: "Told", reading: LedgerReading) -> list[int]:
        """The balances that the account had while a request ran."""
        before = [each.seq for each in self.machines.commits if each.step <= heard.first_step]
        during = [
            each.seq for each in self.machines.commits if heard.first_step < each.step <= heard.last_step
        ]
        start = max(before, default=-1)
        reached = range(start, max([start, *during]) + 1)
        return [reading.balances[seq] if seq >= 0 else 0 for seq in reached]

    def _spendings(self, reading: LedgerReading) -> None:
        """Everything that was spent was asked for, told of, and has the price that rules 2 and 6 say."""
        prices: dict[str, list[int]] = defaultdict(list)
        for entry_id, entry in reading.spendings.items():
            asked, price = self.asked.get(entry_id), -entry["points"]
            if isinstance(asked, plans.Redeem):
                self.must((asked.key, asked.points) == (entry["reward_id"], price), f"{asked} became {entry}")
            elif is_repair(entry) and entry_id in self.repaired | reading.returned:
                # Whose answer was lost finds nothing to repair, once an event has given it back.
                continue
            elif asked is None:
                self.wrong.append(f"nobody was told of {entry}")
            elif asked.door == "user":
                prices[f"{reading.clock(entry['seq']):%Y-%m}"].append(price)
            else:
                self.must(price == 0, f"{asked} cost {price}")
        needless = {day for day in reading.repairs.values() if reading.needs_no_repair(day)}
        self.must(not needless, f"{needless} need no repair, and were not given back")
        for month, paid in prices.items():
            due = [0 if place < FREEZES_FREE else FREEZE_PRICE for place in range(len(paid))]
            self.must(paid == due, f"freezes of {month} cost {paid}, not {due}")
        for undone in set(reading.undone) - reading.returned:
            self.must(undone in self.round.bought.values(), f"nobody undid {undone}")
