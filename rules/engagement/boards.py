"""Which leaderboards there are: of streaks and of points, in each region of the world and in all."""

from rules.days import OTHER_REGION, REGIONS

GLOBAL = "global"
BOARDS = ("streaks", "points")
ALL_REGIONS = (*REGIONS, OTHER_REGION, GLOBAL)
