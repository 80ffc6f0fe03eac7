"""The screen of ``kubectl dra ui``: the fleet, what is pending, claims and devices."""
