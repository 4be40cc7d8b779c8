"""File sources: how operators deploy and change them, and what they see of them."""
