"""Pure decisions. Standard library only: no I/O, no AWS, no settings, no clock."""
