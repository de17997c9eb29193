"""What readers have settled of streaks that the book declares."""
