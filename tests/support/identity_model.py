"""All leads in memory, changed by nothing but the decision (rules/leads/identity_plan.py)."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rules.leads.identity import NEW, Identity, IdentityFacts, IdentityPlan, KnownIdentity
from rules.leads.identity_plan import plan_identities


@dataclass
class World:
    """leads: of each lead its root. owner: of each identity its lead, and whether it is shared. proven, typed:
    the identities that are verified, and for which other leads those that are not were typed. numbers: of all
    leads so far; organizations share them.

    refused: reason and leads. merged: what merges moved, and from which root. apart: pairs of leads.
    """

    leads: dict[int, int] = field(default_factory=dict)
    owner: dict[Identity, tuple[int, bool]] = field(default_factory=dict)
    proven: set[Identity] = field(default_factory=set)
    typed: dict[Identity, frozenset[int]] = field(default_factory=dict)
    refused: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    merged: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    apart: set[frozenset[int]] = field(default_factory=set)
    numbers: list[int] = field(default_factory=list, compare=False)

    def facts(self, identities: Iterable[Identity]) -> IdentityFacts:
        known = {
            each: KnownIdentity(
                lead, self.leads[lead], is_shared, each in self.proven, self.typed.get(each, frozenset())
            )
            for each in identities
            if each in self.owner
            for lead, is_shared in [self.owner[each]]
        }
        held = {each.root: self.held(each.root) for each in known.values()}
        apart = {frozenset(self.leads[lead] for lead in pair) for pair in self.apart}
        return IdentityFacts(known, held, {pair for pair in apart if pair <= set(held)})

    def held(self, root: int) -> set[Identity]:
        return {
            replace(each, is_verified=each in self.proven)
            for each, (lead, is_shared) in self.owner.items()
            if self.leads[lead] == root and each.kind.is_strong and not is_shared
        }

    def new(self) -> int:
        lead = len(self.numbers) + 1
        self.numbers.append(lead)
        self.leads[lead] = lead
        return lead

    def see(self, *identities: Identity) -> int:
        """Take in an event; returns the lead whose it is."""
        plan = plan_identities(identities, self.facts(identities))
        home = self.new() if plan.lead == NEW else plan.lead
        self.apply(plan, home)
        return home

    def apply(self, plan: IdentityPlan, home: int) -> None:
        self.owner |= dict.fromkeys((*plan.attach, *plan.takes), (home, False))
        self.proven |= {each for each in plan.attach if each.is_verified and each.kind.is_strong}
        self.proven |= {*plan.proves, *plan.takes}
        self.typed |= {each: self.typed.get(each, frozenset()) | {home} for each in plan.typed}
        self.owner |= {each: (self.new(), True) for each in plan.shares}
        for merge in plan.merges:
            absorbed = merge.absorbed or home
            assert merge.into < absorbed
            assert self.leads[merge.into] == merge.into
            moved = self.group(absorbed)
            self.leads |= dict.fromkeys(moved, merge.into)
            self.merged.append((absorbed, moved))
        for each in plan.refused:
            roots = {self.leads[root or home] for root in each.roots}
            self.refused.add((each.reason, tuple(sorted(roots))))

    def undo(self) -> None:
        """Undo the newest merge that is not undone."""
        before, moved = self.merged.pop()
        stay = self.group(self.leads[before]) - moved
        self.leads |= dict.fromkeys(moved, before)
        self.apart |= {frozenset({one, other}) for one in moved for other in stay}

    def group(self, root: int) -> frozenset[int]:
        return frozenset(lead for lead, its in self.leads.items() if its == root)

    def root(self, each: Identity) -> int:
        return self.leads[self.owner[each][0]]

    def groups(self) -> set[frozenset[tuple[str, str]]]:
        found: dict[int, set[tuple[str, str]]] = {}
        for each in self.owner:
            found.setdefault(self.root(each), set()).add((each.channel, each.external_id))
        return {frozenset(each) for each in found.values()}
