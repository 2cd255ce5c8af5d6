"""What is concluded: the gate, statistics, recommendations and published claims, from the records of a sweep."""
