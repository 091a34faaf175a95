"""Live interpreters and what belongs to them, as servers see them."""
