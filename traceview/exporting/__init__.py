"""Ways out: a timeline as a file that other programs read."""
