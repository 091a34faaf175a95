"""Sessions, as the keeper of their sandboxes has them."""
