"""Advice from measurements: what holds a server back, what volume a load needs, metrics in a cloud's words, and twins of volumes."""
