"""Pure decisions: the standard library alone, no I/O, no AWS, no settings, no clock."""
