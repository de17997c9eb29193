"""Points as money."""
