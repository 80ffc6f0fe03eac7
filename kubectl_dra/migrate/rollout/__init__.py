"""Clusters that still use device plugins: a survey, and a plan for moving to DRA."""
