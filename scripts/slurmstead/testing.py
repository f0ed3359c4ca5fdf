"""What CI runs."""
