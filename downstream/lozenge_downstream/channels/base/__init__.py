"""What channels are made of; it knows none of them."""
