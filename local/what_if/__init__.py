"""`streakline rules what-if`: what another book of rules would have led to, as text, JSON and a page."""
