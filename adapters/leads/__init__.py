"""Where leads' identities, events, memory and features are stored."""
