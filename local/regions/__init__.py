"""`streakline region`: which region writes, its promotion, and the return of one that wrote before (rule
23).
"""
