"""What another book of rules would have led to, told from the curated lake without writing anything."""
