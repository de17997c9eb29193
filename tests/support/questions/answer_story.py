"""Questions of a generated lake: some closed, some expired, one asked again; people whose stats have moved."""

from datetime import UTC, datetime, timedelta
from itertools import count

from rules.lake.entities import ENTITIES, event_version
from tests.support.lake_sample import FIRST, Row, Sample

START = datetime(FIRST.year, FIRST.month, FIRST.day, 23, 59, 59, 900_000, UTC)
PEOPLE = [f"{number:a>32x}" for number in range(7)]
MOVED = {PEOPLE[0]: PEOPLE[1], PEOPLE[1]: PEOPLE[2]}  # two keys of fingerprints were rotated
KINDS = ("multiple_choice", "text")


class AnswerStory:
    """Tells the questions, answers, stats and messages of a lake, in parts."""

    def __init__(self, sample: Sample) -> None:
        self.sample, self.versions = sample, count(1)
        self.answered: dict[str, list[Row]] = {}
        self.questions: list[Row] = []
        self.asked: dict[tuple[str, str], datetime] = {}

    def first_part(self) -> None:
        for number in range(8):
            asked = START + timedelta(days=3 * number, microseconds=number)
            self.question(f"q{number}", asked, KINDS[number % 4 == 3], required=3 + number % 3)
            self.tell(f"q{number}", asked, phones=number)
            for place in range(min(number, 3 + number % 3)):
                self.answer(self.questions[-1], PEOPLE[(number + place) % len(PEOPLE)], place + 1)
        for question in self.questions[:6]:
            self.over(question)
        for person in self.answered:
            self.stats(person)

    def late_part(self) -> None:
        """The last questions end; one is asked again, by the same key; stats move, and a message settles."""
        for question in self.questions[6:]:
            self.over(question)
        again = START + timedelta(days=64)
        self.question("q0", again, KINDS[0], required=1)
        self.answer(self.questions[-1], PEOPLE[3], 1)
        self.over(self.questions[-1])
        for old, new in MOVED.items():
            self.stats(old, moved_to=new)
        for person in sorted(self.answered.keys() - MOVED.keys()):
            self.stats(person)
        told = next(iter(self.sample.rows["notifications"].values()))
        self.sample.put("notifications", told | {"outcome": "sent", "version": self._version()})

    def question(self, question_id: str, asked: datetime, kind: str, required: int) -> None:
        options = '["ja","größe\'s"]' if kind == "multiple_choice" else None
        row = self._row("questions") | {
            "question_id": question_id,
            "created_at": asked,
            "agent_id": "agent",
            "question_type": kind,
            "category": "general",
            "prompt": "Où est-ce?",
            "options": options,
            "options_count": 2 if options else 0,
            "required_responses": required,
            "closes_at": asked + timedelta(days=1),
            "status": "OPEN",
            "version": self._version(),
        }
        self.questions.append(row)
        self.sample.put("questions", row)

    def over(self, question: Row) -> None:
        came = [
            row["created_at"]
            for key, row in self.sample.rows["responses"].items()
            if (key[0], self.asked[key]) == (question["question_id"], question["created_at"])
        ]
        closed = len(came) >= question["required_responses"]
        ending = {"status": "CLOSED", "closed_at": max(came)} if closed else {"status": "EXPIRED"}
        changed = ending | {"responses": len(came), "version": self._version()}
        self.sample.put("questions", question | changed)

    def answer(self, question: Row, person: str, number: int) -> None:
        is_choice = question["question_type"] == "multiple_choice"
        moment = question["created_at"] + timedelta(seconds=40 * number**3, microseconds=number)
        row = self._row("responses") | {
            **{name: question[name] for name in ("question_id", "agent_id", "question_type", "category")},
            "person": person,
            "created_at": moment,
            "number": number,
            "selected_option": number // 3 if is_choice else None,
            "answer_characters": None if is_choice else 12,
            "confidence": 1 + number % 5 if number % 2 else None,
            "response_time_ms": 1500 * number,
            "points": 10 + number,
            "activity_date": moment.date(),
            "is_signed_in": number % 2 == 0,
            "day_points_max": (150, 18, 12)[number % 3],
        }
        self.asked[question["question_id"], person] = question["created_at"]
        self.sample.put("responses", row)
        self.answered.setdefault(person, []).append(row)

    def stats(self, person: str, moved_to: str | None = None) -> None:
        row = self._row("answer_stats") | {"person": person, "version": next(self.versions)}
        row |= {"updated_at": START + timedelta(days=66, seconds=row["version"]), "moved_to": moved_to}
        if moved_to is None:
            hashes = {person, *(old for old in MOVED if person == PEOPLE[2])}
            mine = [each for one in hashes for each in self.answered.get(one, [])]
            row |= {
                "total_answers": len(mine),
                "total_points": sum(each["points"] for each in mine),
                "streak_days": 1,
                "longest_streak_days": 1,
                "streak_last_date": max(each["activity_date"] for each in mine),
                "badges": "first_answer",
                "answers_by_category": f'{{"general":{len(mine)}}}',
                "first_answer_at": min(each["created_at"] for each in mine),
                "newest_answer_at": max(each["created_at"] for each in mine),
            }
        self.sample.put("answer_stats", row)

    def tell(self, question_id: str, asked: datetime, phones: int) -> None:
        for number in range(phones):
            claimed = asked + timedelta(seconds=5 + number)
            outcome = ("unconfirmed", "sent", "sent", "dead")[number % 4]
            row = self._row("notifications") | {
                "phone": f"{number:a>32x}",
                "message": f"question={question_id}",
                "claimed_at": claimed,
                "question_id": question_id,
                "outcome": outcome,
                "settled_at": None if outcome == "unconfirmed" else claimed + timedelta(seconds=1),
                "version": self._version(),
            }
            self.sample.put("notifications", row)
        reminder = {"message": "reminder=2026-01-01", "question_id": None, "outcome": "sent"}
        if phones:
            self.sample.put("notifications", row | reminder)

    def _version(self) -> str:
        return event_version(START.timestamp(), f"{next(self.versions)}")

    def _row(self, entity: str) -> Row:
        return dict.fromkeys([*(each.name for each in ENTITIES[entity].fields), "extra"])
