"""Points as money: expiry."""
