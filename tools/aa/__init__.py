"""How often live experiments are wrong: one volume twice, and a volume that is truly 3 % faster (``make bench ONLY=aa``)."""
