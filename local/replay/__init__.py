"""Input for a deployed stack, and an independent calculation of its answers."""
