"""The question: a pod or a claim with its claims resolved, and hypothetical changes."""
