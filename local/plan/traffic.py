"""What people do in a day, as somebody who plans would say it."""

from dataclasses import dataclass, fields

from local.plan.measured_units import Functions


class BadTraffic(ValueError):
    """A figure of the plan makes no sense; the text names the option."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A day, on average.

    daily_actives: users who do something. users: all who have an account; 0: four for each active one.
    events_per_user, events_per_batch: of an active user, and in one request. new_users: share of the active
    users who open an account. reads_per_user: profile reads; boards_per_user: top lists and ranks;
    redemptions_per_user; holds_per_user: each is captured; expiries_per_account: how often some points of
    an account expire; clawbacks: share of the events that are reversed later. lead_events: webhooks; leads:
    those whose features are refreshed each morning; lead_reads. questions, answers_per_question; phones:
    how many are told of each question. webhook_endpoints: of outgoing webhooks; 0: these are off.
    retention_days: how long the system has run, and so what is stored.
    peak: the busiest second against the mean.
    """

    daily_actives: float = 0.0
    users: float = 0.0
    events_per_user: float = 5.0
    events_per_batch: float = 5.0
    new_users: float = 0.01
    reads_per_user: float = 3.0
    boards_per_user: float = 0.5
    redemptions_per_user: float = 0.02
    holds_per_user: float = 0.0
    expiries_per_account: float = 0.0
    clawbacks: float = 0.0
    lead_events: float = 0.0
    leads: float = 0.0
    lead_reads: float = 0.0
    questions: float = 0.0
    answers_per_question: float = 10.0
    phones: float = 0.0
    webhook_endpoints: float = 0.0
    retention_days: float = 365.0
    peak: float = 3.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 0:
                raise BadTraffic(f"{option(each.name)} must not be below 0")
        if self.events_per_batch < 1 or self.events_per_batch > 100:
            raise BadTraffic("--events-per-batch must be 1 to 100: a request takes no more")
        if self.peak < 1:
            raise BadTraffic("--peak must be 1 or more: the busiest second is not below the mean")
        if self.new_users > 1:
            raise BadTraffic("--new-users is a share: 0 to 1")
        if self.clawbacks > 1:
            raise BadTraffic("--clawbacks is a share of the events: 0 to 1")
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
    def told_changes(self) -> float:
        """Changes that endpoints of outgoing webhooks are told of in a day: of users, leads and questions."""
        if not self.webhook_endpoints:
            return 0.0
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


def option(name: str) -> str:
    """Return the command line's option of a field."""
    return f"--{name.replace('_', '-')}"


Part = tuple[float, Functions]
