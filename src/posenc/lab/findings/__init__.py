"""The conclusions from the records of a sweep: gate, statistics, recommendations."""
