"""SQL engines: reads.py, writes.py and purges.py once for all, one short dialect module for each engine."""
