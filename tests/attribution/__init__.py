"""How often the limit that binds is named."""
