"""Searches for questions that the plain search does not answer soon; most take longer than the scheduler's
time-out.

``strategies.pruned_solution`` is the only entry. It chooses a search (``merged_search``) that is exact for
the ``problem``, helped by arithmetic that can prove that there is no answer (``bounds``,
``distinct_values``).
"""
