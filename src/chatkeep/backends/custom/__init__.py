"""A person's own store of four verbs behind the full repository. The public door is chatkeep.custom."""
