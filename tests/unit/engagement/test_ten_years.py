"""The profile of an account of ten years has a bound, and the ledger alone makes it whole (rule 3)."""

from datetime import date

from rules.engagement.brought_forward import whole_profile
from rules.engagement.reconciliation import profile_of
from tests.support.short_profiles import protection
from tests.support.ten_years import YEARS, TenYears

WRITE_UNIT_BYTES = 1024


def test_a_profile_stays_within_a_write_unit_and_its_ledger_makes_it_whole() -> None:
    account = TenYears("5f0f8a43-0b1f-4a2f-8c11-000000000000", date(2026, 3, 19))
    assert len(account.entries) > 52 * YEARS * 19
    assert max(account.sizes) <= WRITE_UNIT_BYTES
    profile = account.profile
    assert profile.cover.brought_forward
    assert len(profile.cover.pauses) < 12
    whole = profile_of(profile, sorted(account.entries, key=lambda entry: entry.created_at))
    assert whole.streak
    assert len(whole.streak.spent) > 26 * (YEARS - 1)
    assert len(whole.cover.pauses) > 7 * YEARS
    newest = profile.head.created_at if profile.head else ""
    assert whole_profile(profile, protection(account.entries, newest)) == whole
