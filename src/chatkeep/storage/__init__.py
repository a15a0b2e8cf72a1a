"""Between the public classes and the backends: records, the one codec, the runners."""
