"""Where accounts, days, ledgers and events are stored and cached."""
