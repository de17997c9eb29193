"""Questions, answers, the stats and badges they earn, and who hears of them."""
