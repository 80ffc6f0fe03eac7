"""``kubectl dra taint``, and what ``untaint`` shares with it."""
