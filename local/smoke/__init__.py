"""`streakline smoke`: proves a deployment by using each part of it once, then removes what that made."""
