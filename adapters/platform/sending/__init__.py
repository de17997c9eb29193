"""Many messages in few calls: to a topic of SNS, to a delivery stream of Firehose."""
