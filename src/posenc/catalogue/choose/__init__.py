"""Which encoding to take: measured costs, measured quality, and the rules that choose by them."""
