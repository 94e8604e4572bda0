"""The concierge of an invented city: its phrases, its venues, and how it talks to guests."""
