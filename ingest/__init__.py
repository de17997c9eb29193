"""The doors: HTTP, Kinesis, and the queue of leads. A door decodes, validates and stores."""
