"""The golden master: all that Streakline makes of fixed input, written to text files that can be compared."""
