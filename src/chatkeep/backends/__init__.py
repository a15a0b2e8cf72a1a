"""One folder per family of engines; the registry finds them. No driver is imported before its backend is opened."""
