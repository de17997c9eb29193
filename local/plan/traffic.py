"""What people do in a day, as somebody who plans would say it."""

from dataclasses import dataclass, field, fields, replace


class BadTraffic(ValueError):
    """A figure of the plan makes no sense; the text names the option."""


def _figure(default: float, about: str) -> float:
    figure: float = field(default=default, metadata={"about": about})
    return figure


@dataclass(frozen=True, slots=True)
class Traffic:
    """A day, on average. Each figure is an option of `streakline plan`."""

    daily_actives: float = _figure(0, "users who do something in a day")
    users: float = _figure(0, "all users with an account; 0: four times the daily actives")
    events_per_user: float = _figure(5, "events of an active user in a day")
    events_per_batch: float = _figure(5, "events in one request, 1 to 100")
    new_users: float = _figure(0.01, "share of the daily actives who open an account that day")
    reads_per_user: float = _figure(3, "profile reads of an active user in a day")
    boards_per_user: float = _figure(0.5, "top lists and ranks that an active user looks at in a day")
    redemptions_per_user: float = _figure(0.02, "redemptions of an active user in a day")
    holds_per_user: float = _figure(0, "points held and captured by an active user in a day")
    expiries_per_account: float = _figure(0, "how often points of an account expire in a day")
    clawbacks: float = _figure(0, "share of the events that are reversed later")
    lead_events: float = _figure(0, "webhooks a day")
    leads: float = _figure(0, "leads whose features are refreshed each morning")
    lead_reads: float = _figure(0, "reads of leads' features, memory and events a day")
    questions: float = _figure(0, "questions a day")
    answers_per_question: float = _figure(10, "answers to a question")
    phones: float = _figure(0, "phones that are told of each question")
    webhook_endpoints: float = _figure(0, "endpoints of outgoing webhooks, each told of every change")
    retention_days: float = _figure(365, "days that the system has run, which decide what is stored")
    peak: float = _figure(3, "the busiest second of a day against its mean")

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 0:
                raise BadTraffic(f"{option(each.name)} must not be below 0")
        if self.events_per_batch < 1 or self.events_per_batch > 100:
            raise BadTraffic("--events-per-batch must be 1 to 100: a request takes no more")
        if self.peak < 1:
            raise BadTraffic("--peak must be 1 or more: the busiest second is not below the mean")
        for name in ("new_users", "clawbacks"):
            if getattr(self, name) > 1:
                raise BadTraffic(f"{option(name)} is a share: 0 to 1")
        if self.users and self.users < self.daily_actives:
            raise BadTraffic("--users must not be below --daily-actives")

    @property
    def accounts(self) -> float:
        """All users with an account."""
        return self.users or 4 * self.daily_actives

    @property
    def events(self) -> float:
        """Events a day, without answers to questions."""
        return self.daily_actives * self.events_per_user

    @property
    def answers(self) -> float:
        """Answers a day."""
        return self.questions * self.answers_per_question

    @property
    def changes(self) -> float:
        """Changes of users, leads and questions that an endpoint of outgoing webhooks is told of in a day."""
        of_a_user = self.posts_per_user + self.redemptions_per_user + 2 * self.holds_per_user
        users = self.daily_actives * of_a_user + self.accounts * self.expiries_per_account
        return users + self.events * self.clawbacks + self.lead_events + self.questions

    @property
    def posts_per_user(self) -> float:
        """Requests with events that an active user makes in a day."""
        return max(1.0, self.events_per_user / self.events_per_batch) if self.events_per_user else 0.0

    @property
    def events_a_post(self) -> float:
        """Events in one request."""
        return self.events_per_user / self.posts_per_user if self.posts_per_user else 0.0

    def of_users(self, daily_actives: float) -> "Traffic":
        """Return the same traffic of another number of users: leads and questions grow with them."""
        factor = daily_actives / self.daily_actives if self.daily_actives else 1.0
        names = ("users", "lead_events", "leads", "lead_reads", "questions")
        return replace(
            self, daily_actives=daily_actives, **{name: factor * getattr(self, name) for name in names}
        )


def option(name: str) -> str:
    """Return the command line's option of a figure."""
    return f"--{name.replace('_', '-')}"
