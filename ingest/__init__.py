"""Front doors: HTTP API and Kinesis. Decode, validate, store."""
