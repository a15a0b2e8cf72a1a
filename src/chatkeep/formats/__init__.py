"""A provider's message JSON <-> Message, without loss; one module per provider, imported when asked for."""
