"""Searches for what the plain search does not answer in its first steps; most are longer than the scheduler's time-out.

``strategies.pruned_solution`` is the only entry: it chooses the search (``merged_search``) that is exact for the
``problem``, helped by arithmetic that shows that there is no answer (``bounds``, ``distinct_values``).
"""
