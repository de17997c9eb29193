"""The laptop cloud and the command line `streakline`."""
