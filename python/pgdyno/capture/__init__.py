"""Captures of an application's statements: settings that make a server log them, recording by a relay, and replay on an existing server."""
