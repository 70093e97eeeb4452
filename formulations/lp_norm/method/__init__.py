"""How the nu form of one-class learning is bounded."""
