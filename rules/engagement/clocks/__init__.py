"""What is known of the clocks of devices (rule 16)."""
