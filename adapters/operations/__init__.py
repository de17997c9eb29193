"""What an operator watches: speeds, depths of queues, freshness of the lake."""
