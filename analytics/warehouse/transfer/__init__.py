"""Rows between the warehouse and files of the lake: COPY and UNLOAD."""
