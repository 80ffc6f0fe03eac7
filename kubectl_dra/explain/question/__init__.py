"""What is asked: a pod or a claim with its claims resolved, and what is supposed."""
