"""How a server is made to log what a capture needs, and what is kept of it beside the log. Nothing on the server is changed."""
