"""The streak's particulars: checkpoints to go on from, what is settled, why a date counts."""
