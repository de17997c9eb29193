"""Who a lead is, what is remembered of it, and its features."""
