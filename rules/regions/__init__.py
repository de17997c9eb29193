"""Two regions and one writer: who may write, what a standby takes over, what it never saw (rule 23)."""
