"""What admins declare, apply and revoke over HTTP (rule 17)."""
