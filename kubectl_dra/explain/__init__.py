"""Explains why a claim or pod is pending: funnel, causes, what-if, holders."""
