"""PostgreSQL by a driver or by the RDS Data API, and the migrations of its schema."""
