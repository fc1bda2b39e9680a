"""``full_page_writes`` off: which ways of writing tear pages."""
