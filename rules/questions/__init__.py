"""Questions, answers, the stats and badges they earn, and who is told of them."""
